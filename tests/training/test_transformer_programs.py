"""training.ddp and training.fsdp as programs: what must come out equal, and what a kill must not change."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.training.conftest import Outcome, begin, checkpoints, finish, metrics
from tests.training.transformer_variants import SHAPE, VARIANTS
from training.core.process import Processes
from training.core.settings import flag
from training.ddp import Settings, train


def losses(folder: Path, stack: str) -> list[float]:
    """Of every step from the first; none may be missing or there twice."""
    records = metrics(folder, stack)
    assert [record["step"] for record in records] == list(range(1, len(records) + 1))
    return [record["loss"] for record in records]


def test_every_way_to_train_has_the_same_losses(alone: Processes, tmp_path: Path) -> None:
    """Two launchers of two ranks each are two nodes; what they must agree with is one process by itself."""
    train(tiny_settings(tmp_path), alone)
    expected = losses(tmp_path, "tiny")
    assert expected[-1] < expected[0] - 0.02

    meeting = {"PET_NNODES": "2", "PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": str(free_port())}
    arguments = ("tests.training.transformer_variants", "--checkpoint-path", tmp_path)
    outcomes = [finish(node) for node in [begin(*arguments, **meeting, PET_NODE_RANK=str(rank)) for rank in range(2)]]
    assert [outcome.code for outcome in outcomes] == [0, 0], outcomes
    for name in VARIANTS:
        of_variant = losses(tmp_path / name, "transformer_variants")
        is_bf16 = name.endswith("bf16")
        assert of_variant == pytest.approx(expected, rel=2e-3 if is_bf16 else 1e-5), name
        assert (of_variant == pytest.approx(expected, rel=1e-6)) is not is_bf16, name
    grids = [line.rpartition(" ")[2] for line in outcomes[0].output.splitlines() if "copies × shards" in line]
    assert grids == ["1x4"] * 4 + ["4x1", "2x2"]


def test_compiled_layers_have_the_same_losses(alone: Processes, tmp_path: Path) -> None:
    train(tiny_settings(tmp_path / "eager"), alone)
    train(tiny_settings(tmp_path / "compiled", compile=True), alone)
    assert losses(tmp_path / "compiled", "tiny") == pytest.approx(losses(tmp_path / "eager", "tiny"), rel=1e-5)


def tiny_settings(folder: Path, **others: object) -> Settings:
    flags = {"steps": 4, "global_batch": 16, "log_every_steps": 1, "checkpoint_path": folder}
    return Settings(**flags | SHAPE | others)


def test_fsdp_survives_a_kill_bit_for_bit_and_goes_on_as_ddp_on_one_process(alone: Processes, tmp_path: Path) -> None:
    quiet, killed, resharded = tmp_path / "quiet", tmp_path / "killed", tmp_path / "resharded"
    flags = {"steps": 30, "global_batch": 8, "checkpoint_every_steps": 10}

    def fsdp(folder: Path) -> subprocess.Popen[str]:
        numbers = [word for name, value in (flags | SHAPE).items() for word in (flag(name), str(value))]
        arguments = ("--sharding", "fsdp", "--log-every-steps", "1", "--checkpoint-path", folder, *numbers)
        return begin("training.fsdp", *arguments, TRAINYARD_STACK="tiny")

    assert finish(fsdp(quiet)).code == 0
    expected = losses(quiet, "tiny")
    assert len(expected) == 30
    assert expected[-1] < expected[0] - 0.5

    outcome = killed_after_checkpoint(fsdp(killed), killed)
    assert outcome.code == 138
    assert "was killed by SIGKILL" in outcome.errors
    saved = checkpoints(killed)[-1]
    assert saved < 30
    shutil.copytree(killed, resharded)

    resumed = finish(fsdp(killed))
    assert f"resumed from {killed}/tiny/step-{saved:08d}" in resumed.output
    assert losses(killed, "tiny") == expected

    # The loss of a step is that of its samples: one lost or taken twice would show in the third digit.
    train(tiny_settings(resharded, **flags), alone)
    assert metrics(resharded)[saved]["step_s"] != metrics(killed)[saved]["step_s"]  # it did train
    assert losses(resharded, "tiny") == pytest.approx(expected, rel=1e-4)


def killed_after_checkpoint(launcher: subprocess.Popen[str], folder: Path) -> Outcome:
    """Its second rank is killed as soon as there is a checkpoint."""
    while not checkpoints(folder):
        assert launcher.poll() is None
        time.sleep(0.01)
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    ranks = {rank_of(int(pid)): int(pid) for pid in children}
    os.kill(ranks["1"], signal.SIGKILL)
    return finish(launcher)


def rank_of(pid: int) -> str | None:
    variables = dict(item.partition("=")[::2] for item in Path(f"/proc/{pid}/environ").read_text().split("\0"))
    return variables.get("RANK")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
