"""A run that may lose nodes and gain them: two launchers on this machine are two nodes."""

import os
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.training.conftest import TIMEOUT_S, TINY, begin, finish, losses, metrics

STEPS = 100  # a newcomer takes some seconds to arrive


def test_a_run_goes_on_without_a_node_that_leaves_and_with_one_that_comes(tmp_path: Path) -> None:
    node = _nodes(tmp_path)
    stays, leaves = node(), node()
    _until(lambda: _steps(tmp_path) >= 3, stays)
    leaves.send_signal(signal.SIGTERM)
    assert finish(leaves).code == 143
    at_leaving = _steps(tmp_path)
    _until(lambda: _steps(tmp_path) >= at_leaving + 3, stays)

    comes = node()
    ended = finish(stays)
    assert ended.code == finish(comes).code == 0, ended.errors
    assert ended.errors == ""
    told = [line for line in ended.output.splitlines() if line.startswith("training on")]
    assert told[-3:] == ["training on 2 nodes", "training on 1 node", "training on 2 nodes"]
    assert list(losses(tmp_path)) == list(range(1, STEPS + 1))
    # All stopped after the same step, so that none was trained twice.
    assert _samples_by_step(tmp_path) == dict.fromkeys(range(1, STEPS + 1), 4)


def test_a_node_that_is_lost_costs_the_steps_since_the_last_checkpoint(tmp_path: Path) -> None:
    node = _nodes(tmp_path)
    stays, lost = node(), node()
    _until(lambda: _steps(tmp_path) >= 4, stays)
    os.killpg(lost.pid, signal.SIGKILL)
    ended = finish(stays)
    assert ended.code == 0, ended.errors
    assert "training on 1 node\n" in ended.output
    assert list(losses(tmp_path)) == list(range(1, STEPS + 1))


@pytest.mark.slow
def test_a_program_that_always_fails_is_not_started_for_ever(tmp_path: Path) -> None:
    node = _nodes(tmp_path)
    fails = ["--fault", "raise", "--fault-step", 2, "--fault-rank", 0]
    both = [finish(process) for process in (node(*fails, restarts=1), node(*fails, restarts=1))]
    assert [ended.code for ended in both] == [138, 138]
    assert any("this rank was told to fail" in ended.errors for ended in both)


def _nodes(folder: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts a node of one process; the first one holds the rendezvous."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]

    def start(*arguments: object, restarts: int = 3) -> subprocess.Popen[str]:
        variables = {
            "PET_NNODES": "1:2",
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": f"localhost:{port}",
            "PET_RDZV_ID": "elastic",
            "PET_RDZV_CONF": "last_call_timeout=2,keep_alive_interval=1",
            "PET_MAX_RESTARTS": str(restarts),
            "PET_LOCAL_ADDR": "localhost",
        }
        seen = ["--seen", folder / f"seen-{time.monotonic_ns()}"]
        own = ["--checkpoint-path", folder, "--steps", STEPS, "--step-s", 0.15, *seen]
        process = begin(TINY, *own, *arguments, processes=1, **variables)
        _until(lambda: _is_listening(port), process)
        return process

    return start


def _steps(folder: Path) -> int:
    path = folder / "tiny/local/metrics.jsonl"
    return int(metrics(folder)[-1]["step"]) if path.exists() and path.stat().st_size else 0


def _samples_by_step(folder: Path) -> dict[int, int]:
    lines = [line.split() for path in folder.glob("seen-*") for line in path.read_text().splitlines()]
    return dict(Counter(int(step) for step, _ in lines))


def _is_listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("localhost", port)) == 0


def _until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert process.poll() is None, finish(process)
        assert time.monotonic() < deadline
        time.sleep(0.1)
