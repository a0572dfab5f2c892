"""Reading a process's place from its environment."""

import pytest

from training.core.exits import ConfigurationError
from training.core.place import Place, place_in

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "a", "MASTER_PORT": "1"}
MPI = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "MASTER_ADDR": "a",
}


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({}, Place(rank=0, world_size=1, local_rank=0)),
        (TORCHRUN, Place(rank=3, world_size=4, local_rank=1)),
        ({"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "a"}, Place(rank=1, world_size=2, local_rank=0)),
        ({"RANK": "0", "WORLD_SIZE": "1"}, Place(rank=0, world_size=1, local_rank=0)),
        (MPI, Place(rank=3, world_size=4, local_rank=1)),
        # mpirun inside an operator's pod: the pod's own rank says nothing of the process's.
        (MPI | {"RANK": "0", "WORLD_SIZE": "1"}, Place(rank=3, world_size=4, local_rank=1)),
    ],
)
def test_a_place_is_understood(environ: dict[str, str], place: Place) -> None:
    assert place_in(environ) == place


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"RANK": None}, "RANK is not set, though WORLD_SIZE is"),
        ({"WORLD_SIZE": None}, "WORLD_SIZE is not set, though RANK is"),
        ({"MASTER_ADDR": None}, "MASTER_ADDR is not set, and WORLD_SIZE is 4"),
        ({"RANK": "4"}, "RANK is 4 and WORLD_SIZE is 4"),
        ({"RANK": "-1"}, "RANK is -1"),
        ({"WORLD_SIZE": "four"}, "WORLD_SIZE is 'four': must be a whole number"),
        ({"MASTER_PORT": "http"}, "MASTER_PORT is 'http'"),
        ({"LOCAL_RANK": ""}, "LOCAL_RANK is ''"),
    ],
)
def test_what_is_missing_or_wrong_is_named(change: dict[str, str | None], message: str) -> None:
    environ = {name: value for name, value in (TORCHRUN | change).items() if value is not None}
    with pytest.raises(ConfigurationError, match=message):
        place_in(environ)
