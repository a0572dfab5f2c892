"""Starting programs as a user does, and reading what they leave behind."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from training.core.process import Processes, processes
from training.core.signals import SIGNALS

ROOT = Path(__file__).resolve().parents[2]
WHO_AM_I = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
TINY = "tests.training.tiny"
# A test that hangs must end: the slowest start takes a tenth of it.
TIMEOUT_S = 100
# torch's warning on a machine that is cut off from every network; it says nothing of the program.
_NO_NAME_SERVICE = "The hostname of the client socket cannot be retrieved"


@dataclass(frozen=True)
class Outcome:
    """How a started program ended."""

    code: int
    output: str
    errors: str


def environment(**variables: str) -> dict[str, str]:
    """Two processes on two cores, and nothing inherited that says who they are."""
    outer = {name: value for name, value in os.environ.items() if not name.startswith(("PET_", "TRAINYARD_", "OMPI_"))}
    outer = {name: value for name, value in outer.items() if name not in WHO_AM_I}
    return outer | {"OMP_NUM_THREADS": "1"} | variables


def begin(
    *arguments: object, processes: int | None = 2, python: Path | str = sys.executable, **variables: str
) -> subprocess.Popen[str]:
    """Start the launcher, or with `processes=None` the program itself, in a process group of its own."""
    launcher = [] if processes is None else ["-m", "training.launch", "--nproc-per-node", str(processes)]
    module, *rest = map(str, arguments)
    return subprocess.Popen(
        [python, *(launcher or ["-m"]), module, *rest],
        cwd=ROOT,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], *, timeout_s: float = TIMEOUT_S) -> Outcome:
    output, errors = process.communicate(timeout=timeout_s)
    ours = [line for line in errors.splitlines(keepends=True) if _NO_NAME_SERVICE not in line]
    return Outcome(process.returncode, output, "".join(ours))


def start(
    *arguments: object, processes: int | None = 2, python: Path | str = sys.executable, **variables: str
) -> Outcome:
    return finish(begin(*arguments, processes=processes, python=python, **variables))


def tiny(folder: Path, *arguments: object, processes: int | None = 2, **variables: str) -> Outcome:
    return start(TINY, "--checkpoint-path", folder, *arguments, processes=processes, **variables)


def metrics(folder: Path, stack: str = "tiny") -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / stack / "local/metrics.jsonl").read_text().splitlines()]


def losses(folder: Path) -> dict[int, float]:
    """Loss by step; each step must be there once."""
    records = metrics(folder)
    by_step = {int(record["step"]): record["loss"] for record in records}
    assert [record["step"] for record in records] == sorted(by_step)
    return by_step


def checkpoints(folder: Path, stack: str = "tiny") -> list[int]:
    return sorted(int(path.name.removeprefix("step-")) for path in (folder / stack).glob("step-*"))


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    """A world of one in this process, and its signal handlers as they were."""
    for name in WHO_AM_I:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRAINYARD_STACK", "tiny")
    monkeypatch.setenv("TRAINYARD_RUN", "local")
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    with processes() as procs:
        yield procs
    for number, handler in handlers.items():
        signal.signal(number, handler)
