"""The groups through which processes on torch talk."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import torch
import torch.distributed as dist

from training.core.exits import ConfigurationError, Stopped
from training.core.peers import Peers, Value
from training.core.place import Place, place_in

# torch's own default, in torchrun and in torch.distributed.
_MASTER_PORT = "29500"


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


def _device(place: Place) -> torch.device:
    if not torch.cuda.is_available():
        return torch.device("cpu")
    if place.local_rank >= torch.cuda.device_count():
        raise ConfigurationError(
            f"local rank {place.local_rank} has no GPU: this machine shows {torch.cuda.device_count()}; "
            "start at most one process for each"
        )
    return torch.device("cuda", place.local_rank)
