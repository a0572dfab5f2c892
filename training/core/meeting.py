"""How the ranks of a library with a server of its own find that server, when any of them may be late or started again.

Rank 0 waits at the address that all were given. Once every other rank has come it opens the library's server, tells
them its port, and closes the door: whoever comes later, to a group of which a peer was lost, is not let in half-way but
waits at the door of the next rank 0.
"""

import contextlib
import socket
import time
from collections.abc import Callable

# A pod comes once a node is found for it, which may have to be started first.
_WITHIN_S = 900
_RETRY_S = 0.5
_ATTEMPT_S = 5


def meet(host: str, port: int, *, rank: int, world_size: int, open_server: Callable[[str], int]) -> tuple[str, int]:
    """Address and port of the server that rank 0 opens by `open_server`, at the address by which the others know it."""
    deadline = time.monotonic() + _WITHIN_S
    if rank:
        return _knock(host, port, rank, deadline)
    with socket.create_server(("", port)) as door, contextlib.ExitStack() as guests:
        connections: dict[int, socket.socket] = {}
        while len(connections) < world_size - 1:
            door.settimeout(max(0.0, deadline - time.monotonic()))
            try:
                connection = guests.enter_context(door.accept()[0])
            except TimeoutError:
                missing = sorted(set(range(1, world_size)) - set(connections))
                raise TimeoutError(f"ranks {missing} have not come within {_WITHIN_S} s") from None
            connection.settimeout(_ATTEMPT_S)
            with contextlib.suppress(OSError, ValueError):  # gone again, or none of ours
                connections[int(_line(connection))] = connection
        address: str = next(iter(connections.values())).getsockname()[0]
        server_port = open_server(address)
        for connection in connections.values():
            with contextlib.suppress(OSError):
                connection.sendall(f"{server_port}\n".encode())
        return address, server_port


def free_port() -> int:
    """For a server that cannot choose one by itself."""
    with socket.create_server(("", 0)) as taken:
        return int(taken.getsockname()[1])


def _knock(host: str, port: int, rank: int, deadline: float) -> tuple[str, int]:
    """Look the name up anew each time: rank 0 has another address when its pod is made again."""
    while True:
        try:
            with socket.create_connection((host, port), timeout=_ATTEMPT_S) as connection:
                connection.sendall(f"{rank}\n".encode())
                connection.settimeout(max(1.0, deadline - time.monotonic()))
                return connection.getpeername()[0], int(_line(connection))
        except (OSError, ValueError):  # it is not there yet, or has died while we waited
            if time.monotonic() > deadline:
                raise TimeoutError(f"rank 0 did not answer at {host}:{port} within {_WITHIN_S} s") from None
            time.sleep(_RETRY_S)


def _line(connection: socket.socket) -> str:
    with connection.makefile() as file:
        return file.readline()
