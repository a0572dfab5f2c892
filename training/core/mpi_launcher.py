"""The launcher of an MPIJob: waits for the workers, starts mpirun, and tells the outcome by its exit code.

It imports no torch: its pod has next to no memory.
"""

import contextlib
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

from training.core.exits import CONFIGURATION, CRASHED, DONE, STOPPED
from training.core.modules import exists

HOSTFILE = Path("/etc/mpi/hostfile")
_SSH_PORT = 2222
# A worker that was lost comes back under its name once a node is found for it, which may have to be started first.
_WORKERS_WITHIN_S = 900
# mpirun passes this one on to every rank. From SIGTERM on it gives them a second, and its option for that
# (odls_base_sigkill_timeout) delays the SIGTERM by as much.
STOP_SIGNAL = signal.SIGUSR1


class _ToldToStop(Exception):
    pass


def launch(module: str, arguments: list[str]) -> int:
    """Run the program on all slots to its end; returns the exit code."""
    if not exists(module):
        return _end(CONFIGURATION, f"{module}: there is no such module; an example is training.mnist")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _on_signal)
    try:
        _wait_for(_hosts())
        # Bound to one core each, as is mpirun's default, ranks would share it with their threads and data loaders.
        command = ["mpirun", "--bind-to", "none", sys.executable, "-m", "training.mpi", "rank", module, *arguments]
        mpirun = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    except _ToldToStop:
        return STOPPED
    except TimeoutError as error:
        return _end(CRASHED, str(error))
    except FileNotFoundError as missing:  # the file of hosts, or mpirun
        return _end(
            CONFIGURATION, f"{missing.filename} is not there; start this in an MPIJob, on an image with Open MPI"
        )
    return _outcome(module, _exit_code(mpirun))


def _on_signal(_number: int, _frame: FrameType | None) -> NoReturn:
    raise _ToldToStop


def _hosts() -> list[str]:
    return [line.split()[0] for line in HOSTFILE.read_text().splitlines() if line]


def _wait_for(hosts: list[str]) -> None:
    """Returns when ssh answers on every worker: after a restart some of them may have to be scheduled again."""
    deadline = time.monotonic() + _WORKERS_WITHIN_S
    for host in hosts:
        while not _answers(host):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{host}: no ssh within {_WORKERS_WITHIN_S} s; is the worker's pod running?")
            time.sleep(1)


def _answers(host: str) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, _SSH_PORT), timeout=5) as connection:
        return connection.recv(4) == b"SSH-"
    return False


def _exit_code(mpirun: "subprocess.Popen[bytes]") -> int:
    """mpirun's, which is that of the rank that failed first; passes a signal on to the ranks, and waits for them."""
    try:
        return mpirun.wait()
    except _ToldToStop:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        mpirun.send_signal(STOP_SIGNAL)
        code = mpirun.wait()
        return STOPPED if code == -STOP_SIGNAL else code  # before mpirun, let alone a rank, was ready for it


def _outcome(module: str, code: int) -> int:
    if code in (DONE, CONFIGURATION, STOPPED):
        return code
    return _end(CRASHED, f"{module}: mpirun ended with code {code}")


def _end(code: int, message: str) -> int:
    print(message, file=sys.stderr, flush=True)
    return code
