"""A program under mpirun: the exit codes, the messages and the stop are those of training.launch."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.training.conftest import ROOT, TINY, checkpoints, environment, start
from training.core import mpi_launcher, mpi_worker
from training.core.mpi_launcher import launch

# Two ranks here, and of Open MPI's own ways: its variables, SIGUSR1 passed on, and the first bad end as the exit code.
MPIRUN = f"""\
#!{sys.executable}
import os, signal, subprocess, sys
ranks = []
signal.signal(signal.SIGUSR1, lambda *_: [rank.send_signal(signal.SIGUSR1) for rank in ranks])
for rank in range(2):
    place = dict(RANK=rank, SIZE=2, LOCAL_RANK=rank, LOCAL_SIZE=2)
    variables = {{f"OMPI_COMM_WORLD_{{name}}": str(value) for name, value in place.items()}}
    ranks.append(subprocess.Popen(sys.argv[sys.argv.index("none") + 1 :], env=os.environ | variables))
codes = [rank.wait() for rank in ranks]
sys.exit(next((code if code > 0 else 128 - code for code in codes if code), 0))
"""


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The operator's file with this machine in it, which answers as ssh does; and the mpirun above on PATH."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(b"SSH-2.0-x\r\n")

    threading.Thread(target=answer, daemon=True).start()
    hostfile = tmp_path / "hostfile"
    hostfile.write_text("127.0.0.1 slots=2\n")
    monkeypatch.setattr(mpi_launcher, "HOSTFILE", hostfile)
    monkeypatch.setattr(mpi_launcher, "_SSH_PORT", listener.getsockname()[1])
    mpirun = tmp_path / "bin" / "mpirun"
    mpirun.parent.mkdir()
    mpirun.write_text(MPIRUN)
    mpirun.chmod(0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    inherited = environment(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, PATH=f"{mpirun.parent}:{os.environ['PATH']}")
    for name in set(os.environ) - set(inherited):
        monkeypatch.delenv(name)
    for name, value in inherited.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(ROOT)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield hostfile
    for number, handler in handlers.items():
        signal.signal(number, handler)
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def test_the_ranks_of_mpirun_train_as_one_world(hosts: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert launch(TINY, ["--checkpoint-path", str(tmp_path)]) == 0
    output = capfd.readouterr().out
    assert output.count("step=12 ") == 1
    assert checkpoints(tmp_path)[-1] == 12
    shards = {path.name for path in (tmp_path / "tiny/step-00000012").glob("*.distcp")}
    assert shards == {"__0_0.distcp", "__1_0.distcp"}


def test_a_wrong_flag_is_permanent(hosts: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert launch(TINY, ["--stesp", "5"]) == 2
    assert "--steps" in capfd.readouterr().err


def test_a_crash_and_a_killed_rank_are_worth_another_start(hosts: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert launch(TINY, ["--fault", "kill", "--fault-step", "0", "--fault-rank", "1", "--steps", "2"]) == 138
    assert f"{TINY}: mpirun ended with code" in capfd.readouterr().err


def test_a_stop_saves_and_says_so(hosts: Path, tmp_path: Path) -> None:
    begun = tmp_path / "local"

    def stop_once_begun() -> None:
        while not list(begun.parent.glob("tiny/step-*")):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop_once_begun, daemon=True).start()
    assert launch(TINY, ["--checkpoint-path", str(tmp_path), "--steps", "5000", "--step-s", "0.1"]) == 143
    assert 3 <= checkpoints(tmp_path)[-1] < 5000


def test_a_stop_ends_the_wait_for_a_worker_that_never_comes(hosts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts.write_text("127.0.0.1 slots=2\nno-such-worker.invalid slots=2\n")
    threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
    assert launch(TINY, []) == 143


def test_a_worker_that_never_comes_is_named(
    hosts: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mpi_launcher, "_WORKERS_WITHIN_S", 0)
    hosts.write_text("no-such-worker.invalid slots=2\n")
    assert launch(TINY, []) == 138
    assert "no-such-worker.invalid: no ssh within 0 s" in capsys.readouterr().err


def test_a_program_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert launch("training.mnits", []) == 2
    assert "training.mnits: there is no such module" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["hostfile", "bin/mpirun"])
def test_what_the_pod_should_bring_is_named_when_it_is_missing(
    hosts: Path, missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (hosts.parent / missing).unlink()
    monkeypatch.setenv("PATH", str(hosts.parent / "bin"))
    assert launch(TINY, []) == 2
    assert f"{Path(missing).name} is not there" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["launch"], ["serve", "twice"]])
def test_what_cannot_be_understood_is_answered_with_the_usage(arguments: list[str]) -> None:
    outcome = start("training.mpi", *arguments, processes=None)
    assert outcome.code == 2
    assert "python -m training.mpi serve" in outcome.errors


def test_a_session_gets_the_pods_environment_whatever_is_in_it() -> None:
    quoted = mpi_worker._quoted({"A": 'x "y" \\z', "B": "1 2"})
    assert quoted == r'"A=x \"y\" \\z" "B=1 2"'


def test_a_value_that_ssh_cannot_pass_on_is_named() -> None:
    outcome = start("training.mpi", "serve", processes=None, BROKEN="one\ntwo")
    assert outcome.code == 2
    assert outcome.errors.startswith("BROKEN: ")


def test_a_worker_finds_the_ranks_by_the_daemon_that_started_them(tmp_path: Path) -> None:
    daemon = tmp_path / "orted"
    daemon.symlink_to("/bin/sh")
    process = subprocess.Popen([daemon, "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    rank = int(process.stdout.readline())
    assert rank in mpi_worker._ranks()
    os.kill(rank, signal.SIGTERM)
    process.wait()
    assert rank not in mpi_worker._ranks()
