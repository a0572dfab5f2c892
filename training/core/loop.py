"""The training loop around the steps of a program on torch.

::

    run = Run(settings, procs, model=model, optimizer=optimizer, num_samples=len(images))
    for step in run.steps():
        for micro in run.micro_batches():
            ...
        run.log(loss)
    run.finish(accuracy=...)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from training.core.checkpoint import Checkpoints
from training.core.manifest import Manifest
from training.core.order import SampleOrder, plan_batches
from training.core.process import Processes
from training.core.settings import RunSettings
from training.core.state import random_state, set_random_state, set_state, shapes_of, state_of
from training.core.steps import Steps, checkpoint_folder
from training.core.stop import StopRequest


@dataclass(frozen=True, kw_only=True)
class MicroBatch:
    """The samples of one forward pass on one rank."""

    samples: torch.Tensor
    weight: float
    """Its part of the rank's samples in this step: what its loss is multiplied with."""
    is_last: bool
    """Whether gradients are exchanged after it."""


class Run(Steps):
    """One run of a program, from its first step or from its newest checkpoint to its last."""

    checkpoints: type[Checkpoints] = Checkpoints
    """In what form they are written and read."""

    def __init__(
        self,
        settings: RunSettings,
        procs: Processes,
        *,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        num_samples: int,
    ) -> None:
        self._procs, self._model, self._optimizer = procs, model, optimizer
        self._batches = plan_batches(
            global_batch=settings.global_batch, micro_batch=settings.micro_batch, world_size=procs.world_size
        )
        self._order = SampleOrder(num_samples, seed=settings.seed)
        self._random: dict[str, Any] | None = None
        stop = StopRequest(procs.control)
        folder = checkpoint_folder(settings)
        self._shards = self.checkpoints(folder, keep=settings.checkpoint_keep, procs=procs) if folder else None
        super().__init__(settings, procs, stop=stop, samples_per_step=settings.global_batch, checkpoints=self._shards)

    def steps(self) -> Iterator[int]:
        if self._random:  # here, for a program may draw numbers of its own before its first step
            set_random_state(self._random, self._procs.device)
        return super().steps()

    def micro_batches(self) -> Iterator[MicroBatch]:
        """This rank's share of the step, cut into forward passes."""
        plan = self._batches
        share = torch.from_numpy(self._order.take(self.samples + self._procs.rank * plan.per_rank, plan.per_rank))
        for number, samples in enumerate(share.split(plan.micro_batch), start=1):
            is_last = number == plan.num_micro_batches
            yield MicroBatch(samples=samples, weight=1 / plan.num_micro_batches, is_last=is_last)

    def log(self, loss: torch.Tensor, *, tokens: int | None = None, **extras: float) -> None:
        super().log(loss.detach(), tokens=tokens, **extras)

    def _load(self, manifest: Manifest) -> None:
        assert self._shards
        state = state_of(self._model, self._optimizer)
        self._compare(manifest, shapes_of(state))
        if self._procs.rank < manifest.world_size:
            state["random"] = {str(self._procs.rank): random_state(self._procs.device)}
        self._shards.load(manifest.step, state)
        set_state(self._model, self._optimizer, state)
        self._random = state.get("random", {}).get(str(self._procs.rank))

    def _save(self) -> None:
        if self._shards:
            state = state_of(self._model, self._optimizer)
            shapes = shapes_of(state)
            state["random"] = {str(self._procs.rank): random_state(self._procs.device)}
            self._shards.save(state, step=self.step, samples=self.samples, parameters=shapes)
