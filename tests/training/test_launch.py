"""The launcher's exit codes and messages, and the ways of starting that are not torchrun's."""

import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.training.conftest import TINY, begin, finish, metrics, start, tiny
from training.core.launcher import launch


def test_a_finished_run_reports_itself_and_does_nothing_when_started_again(tmp_path: Path) -> None:
    first = tiny(tmp_path, "--log-every-steps", 4, TRAINYARD_STACK="mine")
    assert (first.code, first.errors) == (0, "")
    lines = [dict(pair.split("=") for pair in line.split()) for line in first.output.splitlines()]
    assert [line["step"] for line in lines] == ["4", "8", "12"]
    assert list(lines[0]) == ["step", "steps", "loss", "samples_per_s", "mfu", "step_s", "eta_s", "checkpoint"]
    assert [line["checkpoint"] for line in lines] == ["3", "6", "12"]
    assert (lines[-1]["mfu"], lines[-1]["eta_s"], lines[-1]["done"]) == ("null", "0", "1")

    records = metrics(tmp_path, stack="mine")
    assert [record["step"] for record in records] == [4, 8, 12]
    assert [list(record) for record in records] == [list(line) for line in lines]
    assert float(lines[1]["loss"]) == pytest.approx(records[1]["loss"], rel=1e-5)

    again = tiny(tmp_path, processes=None, TRAINYARD_STACK="mine")
    assert again.code == 0
    assert "step 12 of 12 is already trained" in again.output
    assert again.output.splitlines()[-1] == first.output.splitlines()[-1]
    assert metrics(tmp_path, stack="mine") == records


def test_a_wrong_flag_is_one_message_and_permanent() -> None:
    outcome = start(TINY, "--stesp", 5)
    assert outcome.code == 2
    assert outcome.errors.count("--stesp") == 1
    assert "--steps" in outcome.errors
    assert "Traceback" not in outcome.errors
    assert not outcome.output


def test_an_operators_wrong_variable_is_permanent_too() -> None:
    outcome = start("training.launch", TINY, processes=None, PET_NPROC_PER_NODE="two")
    assert outcome.code == 2
    assert "two" in outcome.errors
    assert len(outcome.errors.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "variables", "message"),
    [
        (["training.mnits"], {}, "training.mnits: there is no such module"),
        (["no.such.package"], {}, "no.such.package: there is no such module"),
        (["training.mnist"], {"PET_NNODES": "few"}, "--nnodes few"),
        (["training.mnist"], {"TRAINYARD_GRACE_S": "5"}, "TRAINYARD_GRACE_S is '5'"),
        (["--no-python", "training.mnist"], {}, "--no-python"),
    ],
)
def test_a_launcher_that_cannot_start_says_why(
    arguments: list[str],
    variables: dict[str, str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert launch(arguments) == 2
    complaint = capsys.readouterr().err
    assert message in complaint
    assert len(complaint.splitlines()) == 1


def test_a_stop_ends_the_wait_for_a_node_that_never_comes() -> None:
    variables = {
        "PET_NNODES": "2",
        "PET_NODE_RANK": "0",
        "PET_MASTER_ADDR": "127.0.0.1",
        "PET_MASTER_PORT": str(free_port()),
    }
    process = begin("training.launch", TINY, processes=None, **variables)
    wait_for_listener(int(variables["PET_MASTER_PORT"]), process)
    process.send_signal(signal.SIGTERM)
    assert finish(process).code == 143


def test_open_mpi_variables_make_a_world(tmp_path: Path) -> None:
    port = str(free_port())
    ranks = [
        begin(
            *(TINY, "--checkpoint-path", tmp_path, "--steps", 3),
            processes=None,
            OMPI_COMM_WORLD_RANK=str(rank),
            OMPI_COMM_WORLD_SIZE="2",
            OMPI_COMM_WORLD_LOCAL_RANK=str(rank),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=port,
        )
        for rank in range(2)
    ]
    outcomes = [finish(rank) for rank in ranks]
    assert [outcome.code for outcome in outcomes] == [0, 0]
    assert "step=3" in outcomes[0].output
    assert outcomes[1].output == ""
    assert {path.name for path in (tmp_path / "tiny/step-00000003").glob("*.distcp")} == {
        "__0_0.distcp",
        "__1_0.distcp",
    }


def test_survivors_of_a_crash_are_not_waited_for(tmp_path: Path) -> None:
    started = tmp_path / "started"
    faults = ("--fault", "raise", "--fault-rank", 1, "--stuck-rank", 0, "--started", started)
    outcome = tiny(tmp_path, *faults, TRAINYARD_GRACE_S="1000")
    assert outcome.code == 138
    assert "rank 1 failed" in outcome.errors
    # torchrun gives survivors 30 s.
    assert time.time() - started.stat().st_mtime < 20


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for_listener(port: int, process: subprocess.Popen[str]) -> None:
    while process.poll() is None:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(finish(process).errors)
