"""training.deepspeed_gpt: every ZeRO learns what DDP learns, and goes on after an interruption.

It needs the library: `make .venvs/deepspeed/installed`.
"""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.training.conftest import ROOT, begin, checkpoints, finish, start
from tests.training.test_transformer_programs import killed_after_checkpoint, losses
from tests.training.transformer_variants import SHAPE
from tests.training.zero_variants import VARIANTS
from training.core.modules import exists
from training.core.settings import flag

PYTHON = ROOT / ".venvs/deepspeed/bin/python"
needs_deepspeed = pytest.mark.skipif(not PYTHON.exists(), reason="no .venvs/deepspeed")


def deepspeed(
    folder: Path, *arguments: object, sharding: str = "zero2", processes: int = 2, **flags: object
) -> subprocess.Popen[str]:
    numbers = {"steps": 20, "global_batch": 8, "checkpoint_every_steps": 10, "log_every_steps": 1} | SHAPE | flags
    words = [word for name, value in numbers.items() for word in (flag(name), str(value))]
    command = ("training.deepspeed_gpt", "--sharding", sharding, "--checkpoint-path", folder, *words, *arguments)
    return begin(*command, python=PYTHON, processes=processes, TRAINYARD_STACK="tiny")


@needs_deepspeed
def test_every_zero_has_the_losses_of_ddp(tmp_path: Path) -> None:
    outcome = finish(begin("tests.training.zero_variants", "--checkpoint-path", tmp_path, python=PYTHON), timeout_s=300)
    assert (outcome.code, outcome.errors) == (0, "")
    expected = losses(tmp_path / "ddp", "zero_variants")
    assert expected[-1] < expected[0] - 0.02
    for name in VARIANTS:
        of_variant = losses(tmp_path / name, "zero_variants")
        assert of_variant == pytest.approx(expected, rel=2e-3 if name.endswith("bf16") else 1e-5), name


@needs_deepspeed
@pytest.mark.parametrize("sharding", ["none", "zero2", "zero3"])
def test_it_survives_a_kill_bit_for_bit(tmp_path: Path, sharding: str) -> None:
    quiet, killed = tmp_path / "quiet", tmp_path / "killed"
    assert finish(deepspeed(quiet, sharding=sharding)).code == 0
    expected = losses(quiet, "tiny")
    assert len(expected) == 20
    assert expected[-1] < expected[0] - 0.3

    assert killed_after_checkpoint(deepspeed(killed, sharding=sharding), killed).code == 138
    saved = checkpoints(killed)[-1]
    assert saved < 20
    resumed = finish(deepspeed(killed, sharding=sharding))
    assert f"resumed from {killed}/tiny/step-{saved:08d}" in resumed.output
    assert losses(killed, "tiny") == expected


@needs_deepspeed
def test_a_stop_saves_and_what_it_saved_goes_on_only_as_it_was(tmp_path: Path) -> None:
    begun = deepspeed(tmp_path, steps=5000)
    while not checkpoints(tmp_path):
        assert begun.poll() is None
        time.sleep(0.05)
    os.kill(begun.pid, signal.SIGTERM)
    stopped = finish(begun)
    assert stopped.code == 143
    saved = checkpoints(tmp_path)[-1]
    assert f"saved {tmp_path}/tiny/step-{saved:08d}" in stopped.output

    other_sharding = finish(deepspeed(tmp_path, sharding="zero1", steps=saved + 1))
    assert other_sharding.code == 2
    assert "has no zero1" in other_sharding.errors
    fewer_processes = finish(deepspeed(tmp_path, processes=1, steps=saved + 1))
    assert fewer_processes.code == 2
    assert "is of 2 processes, and these are 1" in fewer_processes.errors
    shape = [word for name, value in SHAPE.items() for word in (flag(name), str(value))]
    other_program = start("training.ddp", "--checkpoint-path", tmp_path, *shape, TRAINYARD_STACK="tiny")
    assert other_program.code == 2
    assert "is of another program" in other_program.errors
    same = finish(deepspeed(tmp_path, steps=saved + 1))
    assert same.code == 0
    assert f"step={saved + 1} " in same.output


@needs_deepspeed
@pytest.mark.parametrize(
    ("sharding", "flags", "remedy"),
    [("none", ["--precision", "bf16"], "take --sharding zero1"), ("zero3", ["--compile"], "take --sharding zero2")],
)
def test_what_deepspeed_cannot_do_is_refused(tmp_path: Path, sharding: str, flags: list[str], remedy: str) -> None:
    outcome = finish(deepspeed(tmp_path, *flags, sharding=sharding))
    assert outcome.code == 2
    assert remedy in outcome.errors


@pytest.mark.skipif(exists("deepspeed"), reason="deepspeed is installed beside the tests")
def test_without_the_library_it_says_where_that_is() -> None:
    outcome = start("training.deepspeed_gpt")
    assert outcome.code == 2
    assert "make .venvs/deepspeed/installed" in outcome.errors
