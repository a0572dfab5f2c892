"""metrics.jsonl: each step once and in order, whatever happened to the file."""

import json
from pathlib import Path

import pytest

from training.core.progress import Progress


def steps_in(path: Path) -> list[int]:
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


def test_a_resumed_run_drops_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "run/metrics.jsonl"
    before = Progress(path, after_step=0)
    for step in range(1, 8):
        before.record({"step": step, "loss": 1.0})
    with path.open("a") as file:
        file.write('{"step": 8, "lo')  # the crash

    after = Progress(path, after_step=5)
    assert steps_in(path) == [1, 2, 3, 4, 5]
    assert after.last["step"] == 5
    after.record({"step": 6, "loss": 2.0})
    assert steps_in(path) == [1, 2, 3, 4, 5, 6]


def test_the_record_of_the_last_step_is_replaced_by_the_final_one(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    progress = Progress(path, after_step=0)
    progress.record({"step": 1, "loss": 1.0})
    progress.record({"step": 2, "loss": 1.0, "a_longer_line": 123456789})
    progress.record({"step": 2, "accuracy": 0.5})
    assert path.read_text() == '{"step": 1, "loss": 1.0}\n{"step": 2, "accuracy": 0.5}\n'


def test_a_loss_that_is_no_number_is_shown_and_stays_valid_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "metrics.jsonl"
    progress = Progress(path, after_step=0)
    record = {"step": 1, "loss": float("nan"), "mfu": None}
    progress.record(record)
    progress.show(record)
    assert path.read_text() == '{"step": 1, "loss": null, "mfu": null}\n'
    assert capsys.readouterr().out == "step=1 loss=nan mfu=null\n"


def test_a_file_that_cannot_be_written_is_reported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run").write_text("a file where the folder should be")
    progress = Progress(tmp_path / "run/metrics.jsonl", after_step=0)
    for step in range(1, 4):
        progress.record({"step": step})
    complaints = capsys.readouterr().err.splitlines()
    assert len(complaints) == 1
    assert f"{tmp_path}/run/metrics.jsonl" in complaints[0]


def test_recording_goes_on_when_the_disk_has_room_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "metrics.jsonl"
    progress = Progress(path, after_step=0)
    progress.record({"step": 1})
    with monkeypatch.context() as full_disk:

        def cut_short(self: Progress, path: Path, line: bytes) -> None:
            path.write_bytes(path.read_bytes() + line[:4])
            raise OSError(28, "No space left on device")

        full_disk.setattr(Progress, "_write", cut_short)
        progress.record({"step": 2})
    progress.record({"step": 3})
    assert steps_in(path) == [1, 3]
