"""Who this process is among all, as its environment tells it.

Three ways of starting are understood: torchrun's or an operator's variables (RANK, WORLD_SIZE, MASTER_ADDR,
MASTER_PORT), Open MPI's (OMPI_COMM_WORLD_*, with MASTER_ADDR set beside them), and none at all: a world of one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from training.core.exits import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class Names:
    """The variables that say it."""

    rank: str
    world_size: str
    local_rank: str
    master: str
    """Where rank 0 is."""


OPERATOR = Names(rank="RANK", world_size="WORLD_SIZE", local_rank="LOCAL_RANK", master="MASTER_ADDR")
MPI = Names(
    rank="OMPI_COMM_WORLD_RANK",
    world_size="OMPI_COMM_WORLD_SIZE",
    local_rank="OMPI_COMM_WORLD_LOCAL_RANK",
    master="MASTER_ADDR",
)
# The operator's, but for the rank, which is the pod's index; paddle.distributed.launch reads the same three.
PADDLE = Names(rank="PADDLE_RANK", world_size="PADDLE_NNODES", local_rank="PADDLE_LOCAL_RANK", master="PADDLE_MASTER")


@dataclass(frozen=True, kw_only=True)
class Place:
    """A process's place in the world."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0


def place_in(environ: Mapping[str, str], names: Names | None = None) -> Place:
    """Read a process's place from its environment; what is missing or contradicts itself is named."""
    names = names or (MPI if MPI.rank in environ or MPI.world_size in environ else OPERATOR)
    required = names.rank, names.world_size
    if not any(name in environ for name in required):
        return Place()
    for name, other in (required, required[::-1]):
        if name not in environ:
            raise ConfigurationError(f"{name} is not set, though {other} is: set both, or neither to run alone")
    rank, world_size = (_whole_number(environ, name) for name in required)
    # An operator that starts one process per pod numbers no processes within it.
    local_rank = _whole_number(environ, names.local_rank) if names.local_rank in environ else 0
    if not 0 <= rank < world_size:
        raise ConfigurationError(
            f"{names.rank} is {rank} and {names.world_size} is {world_size}: "
            "ranks count from 0 to one less than the size"
        )
    if world_size > 1 and not environ.get(names.master):
        raise ConfigurationError(
            f"{names.master} is not set, and {names.world_size} is {world_size}: set it to the host name of rank 0"
        )
    if "MASTER_PORT" in environ:
        _whole_number(environ, "MASTER_PORT")
    return Place(rank=rank, world_size=world_size, local_rank=local_rank)


def _whole_number(environ: Mapping[str, str], name: str) -> int:
    try:
        return int(environ[name])
    except ValueError:
        raise ConfigurationError(f"{name} is {environ[name]!r}: must be a whole number") from None
