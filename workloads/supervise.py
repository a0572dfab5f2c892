"""Runs the processes of a local run together: one output, one Ctrl-C, and no survivors of a crash."""

import ctypes
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from threading import Lock, Thread
from types import FrameType

from workloads.progress import Progress

# Exit codes of training.launch: stopped as asked, for which its peers stop too, and save together with it.
_DONE, _STOPPED = 0, 143
# A survivor of a crash waits for its lost peer in C, where a signal does not reach it; it has nothing to save.
_SURVIVORS_S = 5


def supervise(command: list[str], environments: list[dict[str, str]], *, folder: Path, title: str) -> int:
    """Starts one process for each environment, shows what they say, and returns the code of the first that failed."""
    group = _Group([_start(command, environment, folder) for environment in environments])
    with Progress(title) as progress, _passing_on_signals(group, progress):
        for line in group.lines():
            progress.line(line)
        return group.exit_code()


def _start(command: list[str], environment: dict[str, str], folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        # A session of its own: Ctrl-C reaches each process once, through us, and not those that it starts besides.
        start_new_session=True,
        preexec_fn=_die_with_parent if sys.platform == "linux" else None,
    )


class _Group:
    """Processes that live and die together."""

    def __init__(self, processes: list["subprocess.Popen[str]"]) -> None:
        self._processes = processes
        self._lines: Queue[str | None] = Queue()
        self._lock = Lock()
        self._first_failure = _DONE
        self._watchers = [Thread(target=self._watch, args=[process]) for process in processes]
        for watcher in self._watchers:
            watcher.start()

    def stop(self) -> None:
        for process in self._processes:
            process.terminate()

    def lines(self) -> Iterator[str]:
        """What any of them says, line by line, until the last has ended."""
        for _ in self._processes:
            yield from iter(self._lines.get, None)

    def exit_code(self) -> int:
        for watcher in self._watchers:
            watcher.join()
        return self._first_failure

    def _watch(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._lines.put(line.rstrip("\n"))
        code = process.wait()
        self._lines.put(None)
        with self._lock:
            if code == _DONE or self._first_failure:
                return
            self._first_failure = code if code > 0 else 128 - code  # as a shell counts a signal
        if code != _STOPPED:
            self.stop()
            self._end_survivors()

    def _end_survivors(self) -> None:
        for process in self._processes:
            try:
                process.wait(_SURVIVORS_S)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def _passing_on_signals(group: _Group, progress: Progress) -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        group.stop()
        # By a thread: the signal may have come in the middle of a line, and that write cannot be entered again.
        Thread(target=progress.say, args=["stopping: saving a checkpoint first"]).start()

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _die_with_parent() -> None:
    """Even `kill -9` of this process must not leave a run behind that writes to the same folder as the next."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)
