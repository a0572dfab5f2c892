"""The TensorFlow program on two workers, where `make .venvs/tensorflow/installed` has made its libraries."""

import json
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.training.conftest import ROOT, Outcome, environment, finish

VENV = ROOT / ".venvs" / "tensorflow"
pytestmark = pytest.mark.skipif(not (VENV / "installed").exists(), reason="first: make .venvs/tensorflow/installed")

# One worker's start takes as long as most tests.
TIMEOUT_S = 400


def begin(folder: Path, *arguments: object, count: int = 2) -> list[subprocess.Popen[str]]:
    with ExitStack() as held:
        ports = [held.enter_context(socket.create_server(("localhost", 0))).getsockname()[1] for _ in range(count)]
    hosts = [f"localhost:{port}" for port in ports]
    return [
        worker(
            *("--checkpoint-path", folder, "--log-every-steps", 1, *arguments),
            TF_CONFIG=json.dumps({"cluster": {"worker": hosts}, "task": {"type": "worker", "index": rank}}),
        )
        for rank in range(count)
    ]


def worker(*arguments: object, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [VENV / "bin" / "python", "-m", "training.solo", "training.tf_mnist", *map(str, arguments)],
        cwd=ROOT,
        env=environment(TF_CPP_MIN_LOG_LEVEL="1", PYTHONUNBUFFERED="1", **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def start(folder: Path, *arguments: object, count: int = 2) -> list[Outcome]:
    return [finish(process, timeout_s=TIMEOUT_S) for process in begin(folder, *arguments, count=count)]


def losses(outcome: Outcome) -> dict[str, str]:
    """Loss by step, as it is printed."""
    pairs = (dict(pair.split("=") for pair in line.split()) for line in outcome.output.splitlines() if "step=" in line)
    return {line["step"]: line["loss"] for line in pairs}


def test_two_workers_read_digits_and_go_on_from_a_checkpoint_as_if_never_stopped(tmp_path: Path) -> None:
    first, second = start(tmp_path / "whole", "--steps", 60)
    assert (first.code, second.code) == (0, 0), first.errors + second.errors
    assert second.output == ""
    last = dict(pair.split("=") for pair in first.output.splitlines()[-1].split())
    assert float(last["accuracy"]) > 0.9

    assert [outcome.code for outcome in start(tmp_path / "parts", "--steps", 40)] == [0, 0]
    resumed, _ = start(tmp_path / "parts", "--steps", 60)
    assert resumed.output.startswith("resumed from")
    assert list(losses(resumed)) == [str(step) for step in range(41, 61)]
    assert losses(resumed).items() <= losses(first).items()


def test_a_signal_to_one_worker_stops_both_at_the_same_step_after_saving(tmp_path: Path) -> None:
    workers = begin(tmp_path, "--steps", 100_000)
    assert workers[0].stdout is not None
    next(line for line in workers[0].stdout if line.startswith("step=5 "))
    workers[1].terminate()
    outcomes = [finish(process, timeout_s=TIMEOUT_S) for process in workers]
    assert [outcome.code for outcome in outcomes] == [143, 143], outcomes
    (saved,) = (tmp_path / "tf_mnist").glob("step-*")
    assert f"saved {saved}" in outcomes[0].output

    # One process is another number of workers, and reads what two have written.
    step = int(saved.name.removeprefix("step-")) + 1
    (alone,) = start(tmp_path, "--steps", step, "--channels", 16, count=1)
    assert (alone.code, list(losses(alone))) == (0, [str(step)]), alone
    (other,) = start(tmp_path, "--channels", 8, count=1)
    assert other.code == 2
    assert "is of another model" in other.errors


def test_a_survivor_of_a_crash_ends_with_a_code_that_is_retried(tmp_path: Path) -> None:
    workers = begin(tmp_path, "--steps", 100_000)
    assert workers[0].stdout is not None
    next(line for line in workers[0].stdout if line.startswith("step=5 "))
    workers[1].kill()
    survivor = finish(workers[0], timeout_s=TIMEOUT_S)
    assert survivor.code >= 128


def test_a_wrong_flag_and_a_wrong_tf_config_are_refused_in_words() -> None:
    nobody = '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}'
    started = [
        (worker("--global-batch", 0), "--global-batch 0: must be at least 1"),
        (worker(TF_CONFIG=nobody), "all tasks must be workers, counted from 0"),
        (worker(TF_CONFIG='{"cluster": 3}'), "must be like"),
    ]
    for process, message in started:
        outcome = finish(process, timeout_s=TIMEOUT_S)
        assert (outcome.code, outcome.output) == (2, "")
        assert message in outcome.errors
        assert "Traceback" not in outcome.errors
