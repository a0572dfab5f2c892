"""How ranks find rank 0's server, whoever is late, lost or started again."""

import contextlib
import socket
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from training.core import meeting
from training.core.meeting import free_port, meet


def begin(port: int, rank: int, world_size: int = 3, server: int = 4711) -> "Future[tuple[str, int]]":
    """One rank, which has come to the meeting when its result is there."""
    ranks = ThreadPoolExecutor(1)
    return ranks.submit(lambda: meet("localhost", port, rank=rank, world_size=world_size, open_server=lambda _: server))


def connected(port: int) -> socket.socket:
    while True:
        with contextlib.suppress(OSError):
            return socket.create_connection(("localhost", port))


def test_all_learn_where_rank_0s_server_is_in_whatever_order_they_come() -> None:
    port = free_port()
    early, first, late = begin(port, 2), begin(port, 0), begin(port, 1)
    assert {found.result(timeout=30) for found in (early, first, late)} == {("127.0.0.1", 4711)}


def test_a_rank_that_comes_twice_counts_once() -> None:
    port = free_port()
    first = begin(port, 0)
    with connected(port) as lost:
        lost.sendall(b"1\n")
    again, other = begin(port, 1), begin(port, 2)
    assert {found.result(timeout=30) for found in (first, again, other)} == {("127.0.0.1", 4711)}


def test_who_waits_for_a_rank_0_that_dies_is_let_in_by_the_next() -> None:
    port = free_port()
    with socket.create_server(("", port)) as door:
        waiting = begin(port, 1, world_size=2)
        door.accept()[0].close()
    first = begin(port, 0, world_size=2, server=4712)
    assert waiting.result(timeout=30) == first.result(timeout=30) == ("127.0.0.1", 4712)


def test_nobody_is_let_in_once_the_meeting_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    first, second = begin(port, 0, world_size=2), begin(port, 1, world_size=2)
    assert first.result(timeout=30) == second.result(timeout=30)
    monkeypatch.setattr(meeting, "_WITHIN_S", 0)
    with pytest.raises(TimeoutError, match=f"rank 0 did not answer at localhost:{port}"):
        meet("localhost", port, rank=1, world_size=2, open_server=lambda _: 0)


def test_the_ranks_that_do_not_come_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "_WITHIN_S", 0.2)
    with pytest.raises(TimeoutError, match=r"ranks \[1, 2\] have not come"):
        meet("localhost", free_port(), rank=0, world_size=3, open_server=lambda _: 0)
