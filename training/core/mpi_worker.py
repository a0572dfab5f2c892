"""A worker of an MPIJob: an ssh server without root, through which mpirun starts the ranks of this pod.

As the pod's first process it also ends in order: ranks that a drained node would lose are told to save first.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

from training.core.exits import CONFIGURATION, CRASHED, STOPPED

_SSHD = "/usr/sbin/sshd"  # it starts itself anew for each connection, by its full path
# Named in the image's sshd_config too, which holds all that is the same for every pod.
_HOST_KEY = Path("/tmp/ssh_host_key")
_DAEMON = "orted"  # Open MPI's, one per pod and start; the ranks are its children
_POLL_S = 0.2


class _ToldToStop(Exception):
    pass


def serve() -> int:
    """Serve until told to stop; returns the exit code."""
    broken = [name for name, value in os.environ.items() if "\n" in value]
    if broken:
        print(f"{', '.join(broken)}: ssh passes on no value with a line break; put it into one line", file=sys.stderr)
        return CONFIGURATION
    signal.signal(signal.SIGTERM, _on_signal)
    try:
        if not _HOST_KEY.exists():  # a container that was started again has the pod's /tmp
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(_HOST_KEY)], check=True)
        # To the foreground, its log to stderr; a session's environment would otherwise be ssh's own.
        sshd = subprocess.Popen([_SSHD, "-D", "-e", "-o", f"SetEnv={_quoted(dict(os.environ))}"])
        # Daemons leave their session and become children of this process, which as the pod's first has to bury them.
        while os.wait()[0] != sshd.pid:
            pass
    except FileNotFoundError as missing:
        print(f"{missing.filename} is not there; start this on an image with OpenSSH's server", file=sys.stderr)
        return CONFIGURATION
    except _ToldToStop:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _stop_ranks()
        return STOPPED
    return CRASHED


def _on_signal(_number: int, _frame: FrameType | None) -> NoReturn:
    raise _ToldToStop


def _quoted(variables: dict[str, str]) -> str:
    """As sshd_config wants a list of NAME=value."""
    return " ".join('"' + re.sub(r'(["\\])', r"\\\1", f"{name}={value}") + '"' for name, value in variables.items())


def _stop_ranks() -> None:
    """Returns when all have ended; the kubelet sees to it that this takes no longer than the grace period."""
    for rank in _ranks():
        with contextlib.suppress(ProcessLookupError):
            os.kill(rank, signal.SIGTERM)
    while _ranks():
        time.sleep(_POLL_S)


def _ranks() -> list[int]:
    """The processes of this pod that a daemon of mpirun is the parent of."""
    parents: dict[int, int] = {}
    daemons: set[int] = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            pid, _, rest = stat.read_text().partition(" (")
            name, _, fields = rest.rpartition(") ")
            parents[int(pid)] = int(fields.split()[1])
            if name == _DAEMON:
                daemons.add(int(pid))
    return [pid for pid, parent in parents.items() if parent in daemons]
