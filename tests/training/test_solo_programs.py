"""Programs that are their pod's only process, two on this machine; each needs `make .venvs/<image>/installed`."""

import contextlib
import json
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.training.conftest import ROOT, environment
from training.core.meeting import free_port

# Seconds of work, and half a minute of Paddle's import on a busy machine.
TIMEOUT_S = 240


@dataclass(frozen=True)
class Program:
    module: str
    image: str
    steps: int
    log_every: int
    save_every: int
    accuracy: float

    @property
    def arguments(self) -> list[str]:
        numbers = {"steps": self.steps, "log-every-steps": self.log_every, "checkpoint-every-steps": self.save_every}
        return [word for name, number in numbers.items() for word in (f"--{name}", str(number))]


PROGRAMS = [
    Program("training.xgboost_train", "xgboost", steps=24, log_every=2, save_every=6, accuracy=0.93),
    Program("training.paddle_mnist", "paddle", steps=120, log_every=5, save_every=30, accuracy=0.93),
]


@pytest.fixture(params=PROGRAMS, ids=lambda program: program.image)
def program(request: pytest.FixtureRequest) -> Program:
    chosen: Program = request.param
    if not (ROOT / ".venvs" / chosen.image).exists():
        pytest.skip(f"no .venvs/{chosen.image}; first: make .venvs/{chosen.image}/installed")
    return chosen


def variables(rank: int, count: int, port: int) -> dict[str, str]:
    """As the operator and the launcher set them for each pod."""
    master = "localhost"
    return {
        "TRAINYARD_STACK": "trial",
        "RANK": str(rank),
        "WORLD_SIZE": str(count),
        "MASTER_ADDR": master,
        "MASTER_PORT": str(port),
        "PADDLE_RANK": str(rank),
        "PADDLE_NNODES": str(count),
        "PADDLE_MASTER": f"{master}:{port}",
    }


def begin(program: Program, *arguments: object, count: int = 2, port: int | None = None) -> list[subprocess.Popen[str]]:
    """One process for each rank; the last rank starts first."""
    port = port or free_port()
    return [begin_one(program, *arguments, rank=rank, count=count, port=port) for rank in reversed(range(count))][::-1]


def begin_one(program: Program, *arguments: object, rank: int, count: int, port: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [ROOT / ".venvs" / program.image / "bin/python", "-W", "ignore", "-m", "training.solo", *map(str, arguments)],
        cwd=ROOT,
        env=environment(**variables(rank, count, port)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(ranks: list[subprocess.Popen[str]]) -> tuple[list[int], str]:
    """The exit codes, and all that was said."""
    said = [text for rank in ranks for text in rank.communicate(timeout=TIMEOUT_S)]
    return [rank.returncode for rank in ranks], "\n".join(said)


def until_step(first: subprocess.Popen[str], step: int) -> None:
    assert first.stdout is not None
    for line in first.stdout:
        if line.startswith(f"step={step} "):
            return
    raise AssertionError(f"step {step} was never told: {first.stderr.read() if first.stderr else None}")


def line_of(step: int, said: str) -> str:
    return next(line for line in said.splitlines() if line.startswith(f"step={step} "))


def losses(folder: Path) -> dict[int, float]:
    records = [json.loads(line) for line in (folder / "trial/local/metrics.jsonl").read_text().splitlines()]
    assert [record["step"] for record in records] == sorted({record["step"] for record in records})
    return {record["step"]: record["loss"] for record in records}


def saved_steps(folder: Path) -> list[int]:
    return sorted(int(path.name.removeprefix("step-")) for path in (folder / "trial").glob("step-*"))


def test_killed_and_stopped_it_ends_like_a_run_that_nothing_happened_to(program: Program, tmp_path: Path) -> None:
    quiet, hard = tmp_path / "quiet", tmp_path / "hard"
    arguments, steps = program.arguments, program.steps
    compared = ("tests.training.copies_compared", program.module, *arguments, "--checkpoint-path", quiet)
    codes, said = finish(begin(program, *compared))
    assert codes == [0, 0], said
    last = dict(pair.split("=") for pair in line_of(steps, said).split())
    assert last["models"] == "1"
    assert float(last["accuracy"]) > program.accuracy

    life = (program.module, *arguments, "--checkpoint-path", hard)
    # As an operator does: the lost rank is made anew at once, and the other when it has ended of that.
    port = free_port()
    ranks = begin(program, *life, port=port)
    until_step(ranks[0], program.save_every + program.log_every)
    ranks[1].kill()
    second = begin_one(program, *life, rank=1, count=2, port=port)
    codes, said = finish(ranks)
    assert codes == [138, -signal.SIGKILL], said
    assert saved_steps(hard) == [program.save_every]

    ranks = [begin_one(program, *life, rank=0, count=2, port=port), second]
    until_step(ranks[0], program.save_every + program.log_every)
    ranks[1].terminate()
    codes, said = finish(ranks)
    assert codes == [143, 143], said
    stopped = saved_steps(hard)[-1]
    assert program.save_every < stopped < steps
    assert f"stopped at step {stopped} of {steps}: saved" in said

    codes, said = finish(begin(program, *life))
    assert codes == [0, 0], said
    assert losses(hard) == losses(quiet)


def test_one_process_trains_as_well_as_two(program: Program, tmp_path: Path) -> None:
    codes, said = finish(begin(program, program.module, *program.arguments, count=1))
    assert codes == [0], said
    assert float(said.split("accuracy=")[1].split()[0]) > program.accuracy


def test_a_stop_while_it_waits_for_the_others_is_no_failure(program: Program) -> None:
    port = free_port()
    first, second = begin(program, program.module, port=port)
    second.kill()
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("localhost", port)):
            break
        time.sleep(0.2)
    first.terminate()
    codes, said = finish([first, second])
    assert codes == [143, -signal.SIGKILL]
    assert "step=" not in said
    assert "Traceback" not in said


def test_a_wrong_flag_is_permanent_and_named(program: Program) -> None:
    codes, said = finish(begin(program, program.module, "--stesp", 5, count=1))
    assert codes == [2]
    assert "--steps" in said
    assert "Traceback" not in said
