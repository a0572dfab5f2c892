"""A run that is killed, stopped, or robbed of its disk: how it ends, and what the next start makes of it.

Every fault strikes real processes, at a step that the program itself chooses (tests/training/tiny.py).
"""

import os
import shutil
import signal
import time
from pathlib import Path

from tests.training.conftest import TINY, Outcome, begin, checkpoints, finish, losses, tiny


def test_a_run_that_everything_happens_to_ends_bit_for_bit_like_one_that_nothing_does(tmp_path: Path) -> None:
    quiet, hard = tmp_path / "quiet", tmp_path / "hard"
    assert tiny(quiet).code == 0
    assert len(losses(quiet)) == 12

    def life(fault: str, *, rank: int, step: int, step_s: float = 0) -> Outcome:
        return tiny(hard, "--fault", fault, "--fault-rank", rank, "--fault-step", step, "--step-s", step_s)

    killed = life("kill", rank=1, step=5)
    assert killed.code == 138
    assert "rank 1 was killed by SIGKILL" in killed.errors
    assert "Traceback" not in killed.errors
    assert checkpoints(hard) == [3]

    killed = life("kill-in-save", rank=0, step=6)
    assert killed.code == 138
    assert f"resumed from {hard}/tiny/step-00000003" in killed.output
    assert checkpoints(hard) == [3]
    assert list((hard / "tiny").glob(".tmp*"))

    full = tiny(hard, "--disk-full-at-step", 8)
    assert full.code == 138
    assert not list((hard / "tiny").glob(".tmp*"))
    complaints = [line for line in full.errors.splitlines() if "metrics are not recorded" not in line]
    assert len(complaints) == 1, full.errors
    assert f"cannot save checkpoint {hard}/tiny/step-00000009" in complaints[0]
    assert f"{hard}/tiny/step-00000006 is intact" in complaints[0]
    assert checkpoints(hard) == [3, 6]

    stopped = life("stop", rank=1, step=7, step_s=0.12)
    assert stopped.code == 143
    assert stopped.errors == ""
    first_stop = checkpoints(hard)[-1]
    assert first_stop in (7, 8)
    assert f"stopped at step {first_stop} of 12: saved {hard}/tiny/step-{first_stop:08d}" in stopped.output

    stopped = life("stop-launcher-in-save", rank=0, step=9, step_s=0.12)
    assert stopped.code == 143
    assert stopped.errors == ""
    assert checkpoints(hard)[-1] in (10, 11)

    assert tiny(hard).code == 0
    assert losses(hard) == losses(quiet)


def test_three_ranks_round_alike_before_and_after_a_resume(tmp_path: Path) -> None:
    def trained(folder: Path) -> dict[int, float]:
        assert tiny(folder, "--global-batch", 6, "--width", 300, processes=3).code == 0
        return losses(folder)

    whole = trained(tmp_path / "whole")
    (tmp_path / "resumed/tiny").mkdir(parents=True)
    shutil.copytree(tmp_path / "whole/tiny/step-00000006", tmp_path / "resumed/tiny/step-00000006")
    assert trained(tmp_path / "resumed") == {step: loss for step, loss in whole.items() if step > 6}


def test_a_stop_before_the_first_step_is_saved_too(tmp_path: Path) -> None:
    fault = ("--fault", "stop-launcher", "--fault-rank", 0, "--fault-step", 0)
    stopped = tiny(tmp_path, *fault, processes=1)
    assert stopped.code == 143, stopped.errors
    assert checkpoints(tmp_path) == [1]


def test_a_stop_that_the_last_step_overtakes_is_still_a_success(tmp_path: Path) -> None:
    # Heard in step 11, told to the other ranks in step 12.
    fault = ("--fault", "stop-launcher", "--fault-rank", 0, "--fault-step", 11, "--step-s", 0.12)
    outcome = tiny(tmp_path, *fault, processes=1)
    assert outcome.code == 0, outcome.errors
    assert "done=1" in outcome.output.splitlines()[-1]


def test_ctrl_c_in_a_terminal_saves(tmp_path: Path) -> None:
    process = begin(TINY, "--checkpoint-path", tmp_path, "--steps", 1_000_000, "--log-every-steps", 10)
    assert process.stdout
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)  # the impatient second one must not cost the checkpoint
    outcome = finish(process)
    assert outcome.code == 143
    assert "Traceback" not in outcome.errors
    assert f"saved {tmp_path}/tiny/step-{checkpoints(tmp_path)[-1]:08d}" in outcome.output


def test_ranks_outlive_a_killed_launcher_only_to_save(tmp_path: Path) -> None:
    fault = ("--fault", "kill-launcher", "--fault-rank", 0, "--fault-step", 4, "--step-s", 0.12)
    process = begin(TINY, "--checkpoint-path", tmp_path, *fault, processes=1)
    outcome = finish(process)  # ends when the ranks, who hold the other end of the pipes, have ended
    assert outcome.code == -signal.SIGKILL
    assert checkpoints(tmp_path)[-1] in (4, 5)
    assert "stopped at step" in outcome.output


def test_an_error_of_one_rank_is_printed_once_and_is_worth_a_retry(tmp_path: Path) -> None:
    outcome = tiny(tmp_path, "--fault", "raise", "--fault-rank", 1)
    assert outcome.code == 138
    assert outcome.errors.count("Traceback") == 1
    assert "rank 1 failed" in outcome.errors
    assert outcome.errors.rstrip().endswith("ValueError: this rank was told to fail")


def test_a_rank_that_never_reaches_the_end_of_its_step_is_said_to_have_lost_it(tmp_path: Path) -> None:
    fault = ("--fault", "sleep", "--fault-rank", 0, "--started", tmp_path / "started")
    process = begin(TINY, "--checkpoint-path", tmp_path, *fault, processes=1, TRAINYARD_GRACE_S="12")
    while not (tmp_path / "started").exists():
        time.sleep(0.1)
    process.terminate()
    outcome = finish(process)
    assert outcome.code == 138
    assert "TRAINYARD_GRACE_S" in outcome.errors
    assert checkpoints(tmp_path) == [3, 6]


def test_samples_come_once_each_when_the_number_of_processes_changes(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    for processes, steps in ((2, 5), (None, 10), (2, 15)):
        outcome = tiny(tmp_path, "--seen", seen, "--steps", steps, processes=processes)
        assert outcome.code == 0, outcome.errors
    taken = [line.split() for path in tmp_path.glob("seen.*") for line in path.read_text().splitlines()]
    steps_seen = [int(step) for step, _ in taken]
    assert {step: steps_seen.count(step) for step in steps_seen} == dict.fromkeys(range(1, 16), 4)
    # 15 steps of 4 samples are two whole epochs of 30.
    samples = [int(sample) for _, sample in taken]
    assert {sample: samples.count(sample) for sample in samples} == dict.fromkeys(range(30), 2)
    assert list(losses(tmp_path)) == list(range(1, 16))
