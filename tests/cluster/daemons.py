"""Daemons of the node: started, reaped, and started again when they die."""

import os
import signal
import subprocess
import time
from pathlib import Path

_RESTART_AFTER_S = 1.0


class Daemons:
    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._commands: dict[str, list[str]] = {}
        self._running: dict[int, str] = {}
        # A process that nothing refers to is reaped by the next `Popen`, and its end would pass unseen.
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._stopping = False

    def start(self, name: str, command: list[str]) -> None:
        with (self._logs / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_environment())
        self._commands[name] = command
        self._processes[name] = process
        self._running[process.pid] = name

    def stop(self) -> None:
        self._stopping = True
        for pid in self._running:
            os.kill(pid, signal.SIGTERM)

    def watch(self) -> None:
        """Reaps whatever ends in here (orphans of pods come to process 1), and starts daemons again."""
        while not (self._stopping and not self._running):
            try:
                pid, status = os.waitpid(-1, 0)
            except ChildProcessError:
                return
            name = self._running.pop(pid, None)
            if name is not None and not self._stopping:
                print(f"{name} ended with {os.waitstatus_to_exitcode(status)} and is started again", flush=True)
                time.sleep(_RESTART_AFTER_S)
                self.start(name, self._commands[name])


def _environment() -> dict[str, str]:
    # Plugins of containerd and the kubelet look for their helpers there.
    return {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
