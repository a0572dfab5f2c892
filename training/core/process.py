"""Who this process is among all, and the groups through which they talk.

Three ways of starting are understood: torchrun's or an operator's variables (RANK, WORLD_SIZE, MASTER_ADDR,
MASTER_PORT), Open MPI's (OMPI_COMM_WORLD_*, with MASTER_ADDR set beside them), and none at all: a world of one.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import torch
import torch.distributed as dist

from training.core.exits import ConfigurationError, Stopped
from training.core.peers import Peers, Value

# torch's own default, in torchrun and in torch.distributed.
_MASTER_PORT = "29500"
_OPERATOR = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
_MPI = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK")


@dataclass(frozen=True, kw_only=True)
class Place:
    """A process's place in the world, as its environment tells it."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0


@dataclass(frozen=True, kw_only=True)
class Processes(Peers):
    """This process and its peers, by torch.distributed."""

    device: torch.device
    control: dist.ProcessGroup
    """A gloo group for what the processes agree on: it needs no device, and never waits behind gradients."""

    def from_first(self, value: Value) -> Value:
        """Rank 0's value, on every rank."""
        box = [value]
        dist.broadcast_object_list(box, src=0, group=self.control)
        return box[0]

    def from_all(self, value: Value) -> list[Value]:
        """Every rank's value, by rank, on every rank."""
        values: list[Value | None] = [None] * self.world_size
        dist.all_gather_object(values, value, group=self.control)
        return cast(list[Value], values)

    def mean(self, value: float) -> float:
        """The mean over all ranks, on every rank."""
        total = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(total, group=self.control)
        return float(total) / self.world_size


@contextmanager
def processes() -> Iterator[Processes]:
    """Join the process group for the length of a program."""
    place = place_in(os.environ)
    device = _device(place)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    os.environ.setdefault("MASTER_PORT", _MASTER_PORT)
    dist.init_process_group(
        "nccl" if device.type == "cuda" else "gloo",
        rank=place.rank,
        world_size=place.world_size,
        # Alone there is nobody to meet, and no variable to say where.
        **{"store": dist.HashStore()} if place.world_size == 1 else {"init_method": "env://"},
    )
    control = dist.new_group(backend="gloo")
    try:
        yield Processes(rank=place.rank, world_size=place.world_size, device=device, control=control)
    except Stopped:
        _leave(control)
        raise
    # No leaving after any other exception: the peers may have crashed, and would be waited for.
    _leave(control)


def _leave(control: dist.ProcessGroup) -> None:
    dist.barrier(group=control)  # rank 0 may hold the store that the others still use
    dist.destroy_process_group()


def place_in(environ: Mapping[str, str]) -> Place:
    """Read a process's place from its environment; what is missing or contradicts itself is named."""
    names = _MPI if _MPI[0] in environ or _MPI[1] in environ else _OPERATOR
    if not any(name in environ for name in names[:2]):
        return Place()
    for name, other in (names[:2], names[1::-1]):
        if name not in environ:
            raise ConfigurationError(f"{name} is not set, though {other} is: set both, or neither to run alone")
    rank, world_size = (_whole_number(environ, name) for name in names[:2])
    # An operator that starts one process per pod numbers no processes within it.
    local_rank = _whole_number(environ, names[2]) if names[2] in environ else 0
    if not 0 <= rank < world_size:
        raise ConfigurationError(
            f"{names[0]} is {rank} and {names[1]} is {world_size}: ranks count from 0 to one less than the size"
        )
    if world_size > 1 and not environ.get("MASTER_ADDR"):
        raise ConfigurationError(
            f"MASTER_ADDR is not set, and {names[1]} is {world_size}: set it to the host name of rank 0"
        )
    if "MASTER_PORT" in environ:
        _whole_number(environ, "MASTER_PORT")
    return Place(rank=rank, world_size=world_size, local_rank=local_rank)


def _whole_number(environ: Mapping[str, str], name: str) -> int:
    try:
        return int(environ[name])
    except ValueError:
        raise ConfigurationError(f"{name} is {environ[name]!r}: must be a whole number") from None


def _device(place: Place) -> torch.device:
    if not torch.cuda.is_available():
        return torch.device("cpu")
    if place.local_rank >= torch.cuda.device_count():
        raise ConfigurationError(
            f"local rank {place.local_rank} has no GPU: this machine shows {torch.cuda.device_count()}; "
            "start at most one process for each"
        )
    return torch.device("cuda", place.local_rank)
