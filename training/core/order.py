"""Which samples come when: a function of (seed, epoch, place in the epoch), and of nothing else.

The order is global. A step takes the next `global_batch` samples of it and the ranks cut those into equal shares, so
the number of processes can change at any step and every sample is still seen once per epoch. The position in the order
is one integer, the number of samples taken, which is all that a checkpoint has to keep.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from training.core.exits import ConfigurationError

Samples = npt.NDArray[np.int64]


class SampleOrder:
    """The samples 0 … num_samples-1, shuffled anew for each epoch, without end."""

    def __init__(self, num_samples: int, *, seed: int) -> None:
        self._num_samples = num_samples
        self._seed = seed
        self._epochs: dict[int, Samples] = {}

    def take(self, start: int, count: int) -> Samples:
        """The samples from position `start` on, across the end of an epoch if need be."""
        parts = []
        while count > 0:
            epoch, place = divmod(start, self._num_samples)
            part = self._epoch(epoch)[place : place + count]
            parts.append(part)
            start += len(part)
            count -= len(part)
        return np.concatenate(parts)

    def _epoch(self, epoch: int) -> Samples:
        if epoch not in self._epochs:
            generator = np.random.Generator(np.random.PCG64(_mixed(self._seed, epoch)))
            # Only the newest is worth its memory: positions do not go back.
            self._epochs = {epoch: generator.permutation(self._num_samples)}
        return self._epochs[epoch]


def _mixed(seed: int, epoch: int) -> int:
    """One seed out of two numbers, such that seed 0's second epoch is not seed 1's first."""
    digest = hashlib.blake2b(f"{seed} {epoch}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


@dataclass(frozen=True, kw_only=True)
class BatchPlan:
    """How the samples of one step are divided: among the ranks, then into forward passes."""

    global_batch: int
    per_rank: int
    micro_batch: int

    @property
    def num_micro_batches(self) -> int:
        return self.per_rank // self.micro_batch


def plan_batches(*, global_batch: int, micro_batch: int | None, world_size: int) -> BatchPlan:
    """Divide a step; what does not divide evenly would weigh some samples more than others, and is refused."""
    per_rank, rest = divmod(global_batch, world_size)
    if rest or per_rank == 0:
        raise ConfigurationError(
            f"--global-batch {global_batch} cannot be shared equally by {world_size} processes: "
            f"take a multiple of {world_size}, such as {(per_rank or 1) * world_size}"
        )
    micro_batch = micro_batch or per_rank
    if per_rank % micro_batch:
        raise ConfigurationError(
            f"--micro-batch {micro_batch} does not divide the {per_rank} samples that each of {world_size} processes "
            f"has of --global-batch {global_batch}"
        )
    return BatchPlan(global_batch=global_batch, per_rank=per_rank, micro_batch=micro_batch)
