"""`run`: the experiment on this machine, and what survives when it is interrupted."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.conftest import EXPERIMENT, OWN_COMMAND, PLATFORM, merged, write_stack
from workloads.local import _default_processes, _on_this_machine, _prepare, _too_big, run_locally
from workloads.loss_curve import draw_loss_curve
from workloads.programs import PROJECT
from workloads.progress import parse_line
from workloads.stacks import load_experiment

SMALL = {"args": {"steps": 60, "log_every_steps": 5}, "checkpoint": {"path": "/shared/ckpt", "every_steps": 20}}


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    write_stack(tmp_path, "lab", "platform", PLATFORM)
    return tmp_path


def start(path: Path, folder: Path, *words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "workloads", "run", str(path), "--folder", str(folder), *words]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process: "subprocess.Popen[str]") -> tuple[int, str]:
    output, _ = process.communicate(timeout=180)
    return process.returncode, output


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_run_leaves_its_metrics_its_picture_and_its_volume_and_resumes(lab: Path) -> None:
    path, folder = write_stack(lab, "small", "experiment", merged(EXPERIMENT, SMALL)), lab / "run"
    code, output = finish(start(path, folder, "--steps", "40"))
    assert code == 0, output
    assert (folder / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "volumes" / "shared" / "ckpt" / "small" / "step-00000040").is_dir()
    assert [record["step"] for record in records(folder)] == list(range(5, 41, 5))

    code, output = finish(start(path, folder))
    assert code == 0, output
    assert "resumed" in output
    assert "accuracy=" in output
    assert [record["step"] for record in records(folder)] == list(range(5, 61, 5))

    code, output = finish(start(path, folder))
    assert code == 0, output
    assert "already trained" in output


def test_ctrl_c_saves_and_says_so_and_the_next_run_goes_on(lab: Path) -> None:
    long = {"args": {"steps": 100_000, "log_every_steps": 1}, "checkpoint": {"path": "/shared/ckpt"}}
    path, folder = write_stack(lab, "long", "experiment", merged(EXPERIMENT, long)), lab / "run"
    process = start(path, folder)
    assert process.stdout is not None
    next(line for line in process.stdout if parse_line(line))
    process.send_signal(signal.SIGINT)
    code, output = finish(process)
    assert code == 143, output
    assert "saved" in output
    saved = int(next((folder / "volumes/shared/ckpt/long").glob("step-*")).name.removeprefix("step-"))
    code, output = finish(start(path, folder, "--steps", str(saved + 3)))
    assert code == 0, output
    assert f"step-{saved:08d}" in output


def test_a_run_does_not_outlive_the_verb_that_started_it(lab: Path) -> None:
    long = {"args": {"steps": 100_000, "log_every_steps": 1}, "checkpoint": {"path": "/shared/ckpt"}}
    path, folder = write_stack(lab, "orphan", "experiment", merged(EXPERIMENT, long)), lab / "run"
    process = start(path, folder)
    assert process.stdout is not None
    next(line for line in process.stdout if parse_line(line))
    process.kill()
    process.wait()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and _running_below(folder):
        time.sleep(0.2)
    assert not _running_below(folder)


def _running_below(folder: Path) -> list[str]:
    """Processes whose command line names the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if str(folder) in command:
                found.append(command)
    return found


def test_a_wrong_flag_value_ends_with_the_programs_exit_code(lab: Path) -> None:
    changes = {"batch": {"global": 64}, "nodes": 2}
    path = write_stack(lab, "odd", "experiment", merged(EXPERIMENT, changes))
    code, output = finish(start(path, lab / "run", "--processes", "3"))
    assert code == 2, output
    assert "Traceback" not in output


def test_a_command_of_the_users_own_runs_as_it_is(lab: Path) -> None:
    own = {**OWN_COMMAND, "program": {"command": [sys.executable, "-c", "print('mine'); raise SystemExit(7)"]}}
    path = write_stack(lab, "own", "experiment", merged(EXPERIMENT, own))
    code, output = finish(start(path, lab / "run"))
    assert (code, "mine" in output) == (7, True)


def test_a_kind_without_torchrun_starts_its_processes_itself(lab: Path) -> None:
    changes = {"launcher": "tf-job", "program": "training.mnist"}
    stack = load_experiment(write_stack(lab, "lone", "experiment", merged(EXPERIMENT, changes)))
    run = _prepare(stack, 2, None, lab / "run")
    assert run.command[1:4] == ["-m", "training.solo", "training.mnist"]
    first, second = (json.loads(environment["TF_CONFIG"]) for environment in run.environments)
    assert (first["task"]["index"], second["task"]["index"]) == (0, 1)
    assert first["cluster"] == second["cluster"]


def test_an_image_with_libraries_of_its_own_needs_them_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_stack(tmp_path, "lab", "platform", merged(PLATFORM, {"images": {"build": ["training", "tensorflow"]}}))
    changes = {"launcher": "tf-job", "image": "tensorflow"}
    stack = load_experiment(write_stack(tmp_path, "own-libraries", "experiment", merged(EXPERIMENT, changes)))
    monkeypatch.setattr("workloads.local.PROJECT", tmp_path)
    assert run_locally(stack, processes=2, steps=1, folder=tmp_path / "run") == 2
    assert "fix: make .venvs/tensorflow/installed" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_path_below_a_mount_becomes_a_folder_here() -> None:
    mounts = {"/shared": Path("/here/shared")}
    assert _on_this_machine("/shared/ckpt", mounts) == "/here/shared/ckpt"
    assert _on_this_machine("/shared", mounts) == "/here/shared"
    assert _on_this_machine("/sharedx", mounts) == "/sharedx"
    assert _on_this_machine(["/shared/a", 3], mounts) == ["/here/shared/a", 3]


def test_a_model_that_this_machine_cannot_hold_is_refused_with_a_smaller_one(lab: Path) -> None:
    huge = {**OWN_COMMAND, "model": {"parameters": 70_000_000_000}}
    stack = load_experiment(write_stack(lab, "huge", "experiment", merged(EXPERIMENT, huge)))
    assert _default_processes(stack.run) <= 2
    refusal = _too_big(stack.run, 2)
    assert refusal is not None
    assert "--set model.layers=2" in refusal


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("step=10 steps=400 loss=0.5 samples_per_s=812.1 mfu=null", "10"),
        ("[default0]:step=10 steps=400 loss=null", "10"),
        ("[rank0]: step=10 steps=400", "10"),
        ("resumed from step 10", None),
        ("", None),
    ],
)
def test_a_progress_line_is_recognised_behind_torchruns_prefix(line: str, step: str | None) -> None:
    pairs = parse_line(line)
    assert (pairs and pairs["step"]) == step


def test_the_loss_curve_skips_half_written_lines(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.0}\n{"step": 3, "lo')
    assert draw_loss_curve(metrics, tmp_path / "loss.png", title="t")
    metrics.write_text('{"step": 1, "loss": null}\n')
    assert not draw_loss_curve(metrics, tmp_path / "none.png", title="t")
