"""Starts and stops the node from outside, and asks it how it is."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.cluster import node
from tests.cluster.components import NODE
from tests.cluster.images import buildah_environment, certificate_options
from tests.cluster.paths import KUBECONFIG, PROJECT, STATE
from tests.cluster.toolchain import BuildFailed, built

_READY_WITHIN_S = 180
_STOPPED_WITHIN_S = 20


def build_own_images() -> None:
    """The project's own Dockerfiles, by the project's own verb."""
    command = [sys.executable, "-m", "workloads", "build", "--platform", "local", "--", *certificate_options()]
    if subprocess.run(command, cwd=PROJECT, env=buildah_environment()).returncode:
        raise BuildFailed("the project's own images do not build")


def start_node() -> None:
    """Starts it, or leaves a running one alone; returns once pods can be scheduled and volumes bound."""
    if _running() is None:
        node.start()
    _until(lambda: _kubectl("get", "--raw", "/readyz") == "ok", "the API server")
    _until(lambda: _kubectl("get", "node", NODE, "-o", _READY) == "True", "the node")
    _until(lambda: bool(_kubectl("get", "storageclass", "fsx-sc", "-o", "name")), "the storage classes")
    _until(lambda: bool(_kubectl("get", "serviceaccount", "default", "-o", "name")), "the default namespace")


def stop_node() -> None:
    """Ends it and removes every trace but the cache."""
    outside = _running()
    if outside is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(node.first_process(outside), signal.SIGTERM)
        if not _ends(outside):
            os.kill(outside, signal.SIGKILL)
            _ends(outside)
    node.remove_traces()
    shutil.rmtree(STATE, ignore_errors=True)


_READY = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'


def _running() -> int | None:
    """The process on the host that waits for the node's first one."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((STATE / "pid").read_text())
        if b"tests.cluster.node" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    return None


def _ends(pid: int) -> bool:
    deadline = time.monotonic() + _STOPPED_WITHIN_S
    while _running() == pid and time.monotonic() < deadline:
        time.sleep(0.1)
    return _running() != pid


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _READY_WITHIN_S
    while not condition():
        if _running() is None:
            raise BuildFailed(f"the node has ended; {STATE / 'logs' / 'node.log'} says why")
        if time.monotonic() > deadline:
            raise BuildFailed(f"{what} is not ready after {_READY_WITHIN_S} s; see {STATE / 'logs'}")
        time.sleep(0.3)


def _kubectl(*arguments: str) -> str:
    """What it prints, or nothing."""
    kubectl = str(built("kubernetes") / "bin" / "kubectl")
    done = subprocess.run([kubectl, "--kubeconfig", str(KUBECONFIG), *arguments], capture_output=True, text=True)
    return "" if done.returncode else done.stdout.strip()
