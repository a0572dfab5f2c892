"""Checkpoints: which one a run starts from, which ones stay, and what is refused. In a world of one process."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.training.conftest import checkpoints
from training.core.exits import ConfigurationError
from training.core.loop import Run
from training.core.process import Processes
from training.core.settings import RunSettings

Optimizer = type[torch.optim.Optimizer]


def train(
    folder: Path,
    procs: Processes,
    *,
    steps: int,
    width: int = 2,
    optimizer: Optimizer = torch.optim.Adam,
    micro_batch: int | None = None,
    keep: int = 3,
    every: int = 2,
    no_resume: bool = False,
) -> tuple[nn.Module, int]:
    """A few steps on a plane; returns the model, and the step it resumed from."""
    torch.manual_seed(0)
    settings = RunSettings(
        steps=steps,
        global_batch=4,
        micro_batch=micro_batch,
        checkpoint_path=folder,
        checkpoint_every_steps=every,
        checkpoint_keep=keep,
        no_resume=no_resume,
    )
    model = nn.Linear(width, 1)
    inputs = torch.randn(10, width)
    chosen = optimizer(model.parameters(), lr=0.1)
    run = Run(settings, procs, model=model, optimizer=chosen, num_samples=10)
    resumed_from = run.step
    for _ in run.steps():
        for micro in run.micro_batches():
            loss = (model(inputs[micro.samples]) - 1).square().mean() * micro.weight
            loss.backward()
        chosen.step()
        chosen.zero_grad()
        run.log(loss)
    run.finish()
    return model, resumed_from


def truncate(checkpoint: Path) -> str:
    shard = checkpoint / "__0_0.distcp"
    shard.write_bytes(shard.read_bytes()[:-1])
    return "__0_0.distcp has"


def flip_a_bit(checkpoint: Path) -> str:
    shard = checkpoint / "__0_0.distcp"
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    return "__0_0.distcp does not have the checksum"


def lose_a_file(checkpoint: Path) -> str:
    (checkpoint / ".metadata").unlink()
    return ".metadata cannot be read (No such file or directory)"


def lose_the_manifest(checkpoint: Path) -> str:
    (checkpoint / "manifest.json").unlink()
    return "it has no manifest.json"


def cut_the_manifest(checkpoint: Path) -> str:
    (checkpoint / "manifest.json").write_text('{"step": 6, "fil')
    return "its manifest.json cannot be read"


def rename_a_key(checkpoint: Path) -> str:
    body = json.loads((checkpoint / "manifest.json").read_text())
    body["stp"] = body.pop("step")
    (checkpoint / "manifest.json").write_text(json.dumps(body))
    return "its manifest.json cannot be read"


@pytest.mark.parametrize(
    "damage", [truncate, flip_a_bit, lose_a_file, lose_the_manifest, cut_the_manifest, rename_a_key]
)
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_is_taken(
    tmp_path: Path, alone: Processes, capsys: pytest.CaptureFixture[str], damage
) -> None:
    train(tmp_path, alone, steps=6)
    newest = tmp_path / "tiny/step-00000006"
    complaint = damage(newest)
    capsys.readouterr()

    _, resumed_from = train(tmp_path, alone, steps=6)
    assert resumed_from == 4
    output = capsys.readouterr().out
    assert f"skipped checkpoint {newest}: {complaint}" in output
    # The step is reached again, and its checkpoint replaced by a good one.
    assert train(tmp_path, alone, steps=6)[1] == 6


def test_a_resumed_run_ends_with_the_same_weights(tmp_path: Path, alone: Processes) -> None:
    whole, _ = train(tmp_path / "whole", alone, steps=7)
    train(tmp_path / "halves", alone, steps=3)
    halves, resumed_from = train(tmp_path / "halves", alone, steps=7)
    assert resumed_from == 3
    assert all(torch.equal(one, other) for one, other in zip(whole.parameters(), halves.parameters(), strict=True))


def test_accumulated_micro_batches_make_the_same_step(tmp_path: Path, alone: Processes) -> None:
    whole, _ = train(tmp_path / "whole", alone, steps=5)
    cut, _ = train(tmp_path / "cut", alone, steps=5, micro_batch=1)
    for one, other in zip(whole.parameters(), cut.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_the_newest_are_kept(tmp_path: Path, alone: Processes) -> None:
    train(tmp_path, alone, steps=9, keep=2)
    assert checkpoints(tmp_path) == [8, 9]
    train(tmp_path, alone, steps=10, keep=1)
    assert checkpoints(tmp_path) == [10]


def test_leftovers_of_a_dead_run_are_removed(tmp_path: Path, alone: Processes) -> None:
    train(tmp_path, alone, steps=2)
    shutil.copytree(tmp_path / "tiny/step-00000002", tmp_path / "tiny/.tmp-step-00000004-dead")
    train(tmp_path, alone, steps=4)
    assert not list((tmp_path / "tiny").glob(".tmp*"))
    assert checkpoints(tmp_path) == [2, 4]


def test_starting_over_replaces_what_was_there_only_when_it_has_something_better(
    tmp_path: Path, alone: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    train(tmp_path, alone, steps=6)
    _, resumed_from = train(tmp_path, alone, steps=1, no_resume=True)
    assert resumed_from == 0
    assert checkpoints(tmp_path) == [1]
    assert f"removed checkpoint {tmp_path}/tiny/step-00000006: this run is at step 1" in capsys.readouterr().out
    assert train(tmp_path, alone, steps=2)[1] == 1


def test_a_checkpoint_of_another_model_is_refused_by_name(tmp_path: Path, alone: Processes) -> None:
    train(tmp_path, alone, steps=2)
    with pytest.raises(ConfigurationError, match=r"parameter weight is \[1, 2\] there and \[1, 3\] here"):
        train(tmp_path, alone, steps=4, width=3)
    assert checkpoints(tmp_path) == [2]


def test_a_checkpoint_of_another_optimizer_is_refused(tmp_path: Path, alone: Processes) -> None:
    train(tmp_path, alone, steps=2, optimizer=torch.optim.Adagrad)
    with pytest.raises(ConfigurationError, match=r"is of another program: .*exp_avg"):
        train(tmp_path, alone, steps=4)


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path, alone: Processes) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match=f"--checkpoint-path: cannot write to {tmp_path}/file/tiny"):
        train(tmp_path / "file", alone, steps=1)


def test_fewer_steps_than_are_trained_is_no_error(
    tmp_path: Path, alone: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    train(tmp_path, alone, steps=6)
    train(tmp_path, alone, steps=4)
    assert "step 6 of 4 is already trained" in capsys.readouterr().out
    assert checkpoints(tmp_path) == [2, 4, 6]
