"""Processes of a local run: they start, stop and fail together."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workloads.supervise import supervise

# Each process does what its own variable says.
COMMAND = [sys.executable, "-uc", "import os; exec(os.environ['DOES'])"]
SLEEPS = "import time; print('sleeps'); time.sleep(600)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPS
SAVES = (
    "import signal, sys, time; "
    "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(1), print('saved'), sys.exit(143))); " + SLEEPS
)


def outcome(*programs: str) -> int:
    environments = [{**os.environ, "DOES": program} for program in programs]
    return supervise(COMMAND, environments, folder=Path.cwd(), title="test")


def test_their_lines_are_one_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome("print('one')", "print('two')", "print('three')") == 0
    assert sorted(capsys.readouterr().out.split()) == ["one", "three", "two"]


@pytest.mark.parametrize("survivor", [SLEEPS, DEAF], ids=["listens", "is-deaf"])
def test_one_that_crashes_ends_the_others_and_names_the_code(survivor: str) -> None:
    assert outcome(survivor, "raise SystemExit(138)", survivor) == 138


def test_a_killed_process_counts_as_in_a_shell() -> None:
    assert outcome(SLEEPS, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)") == 137


def test_one_that_was_stopped_leaves_the_others_the_time_to_save(capsys: pytest.CaptureFixture[str]) -> None:
    saves_later = "import time; time.sleep(7); print('saved'); raise SystemExit(143)"
    assert outcome("raise SystemExit(143)", saves_later) == 143
    assert "saved" in capsys.readouterr().out


def test_ctrl_c_reaches_each_of_them_once_and_waits_for_all() -> None:
    script = (
        "import os, sys; from pathlib import Path; from workloads.supervise import supervise; "
        f"environments = [{{**os.environ, 'DOES': {SAVES!r}}}] * 2; "
        f"sys.exit(supervise({COMMAND!r}, environments, folder=Path.cwd(), title='test'))"
    )
    process = subprocess.Popen([sys.executable, "-uc", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["sleeps\n"] * 2
    process.send_signal(2)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 143
    assert output.splitlines().count("saved") == 2
