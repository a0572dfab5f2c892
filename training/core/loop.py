"""The training loop around a program's own steps: resume, stop, save, report.

::

    run = Run(settings, procs, model=model, optimizer=optimizer, num_samples=len(images))
    for step in run.steps():
        for micro in run.micro_batches():
            ...
        run.log(loss)
    run.finish(accuracy=...)
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from training.core.checkpoint import Checkpoints
from training.core.exits import ConfigurationError, Stopped
from training.core.order import SampleOrder, plan_batches
from training.core.process import Processes
from training.core.progress import Progress, Record
from training.core.settings import RunSettings
from training.core.state import random_state, set_random_state, set_state, shapes_of, state_of
from training.core.stop import StopRequest


@dataclass(frozen=True, kw_only=True)
class MicroBatch:
    """The samples of one forward pass on one rank."""

    samples: torch.Tensor
    weight: float
    """Its part of the rank's samples in this step: what its loss is multiplied with."""
    is_last: bool
    """Whether gradients are exchanged after it."""


class Run:
    """One run of a program, from its first step or from its newest checkpoint to its last."""

    def __init__(
        self,
        settings: RunSettings,
        procs: Processes,
        *,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        num_samples: int,
    ) -> None:
        self.step = 0
        """Optimizer steps that are done."""
        self.samples = 0
        """Position in the data order."""
        self._settings, self._procs, self._model, self._optimizer = settings, procs, model, optimizer
        self._batches = plan_batches(
            global_batch=settings.global_batch, micro_batch=settings.micro_batch, world_size=procs.world_size
        )
        self._order = SampleOrder(num_samples, seed=settings.seed)
        self._stop = StopRequest(procs.control)
        folder = settings.checkpoint_path and settings.checkpoint_path / os.environ["TRAINYARD_STACK"]
        self._checkpoints = Checkpoints(folder, keep=settings.checkpoint_keep, procs=procs) if folder else None
        self._random: dict[str, Any] | None = None
        if self._checkpoints:
            self._resume(self._checkpoints)
        self._progress = Progress(_metrics_path(folder), after_step=self.step) if procs.is_first else None
        self._loss: torch.Tensor
        self._tokens: int | None = None
        self._extras: dict[str, float] = {}

    def steps(self) -> Iterator[int]:
        """The number of each step that is left, from 1; saves, reports and stops between them."""
        last = self._settings.steps
        if self.step >= last:
            self._procs.say(f"step {self.step} of {last} is already trained: nothing to do")
        if self._random:  # here, for a program may draw numbers of its own before its first step
            set_random_state(self._random, self._procs.device)
        self._since, self._since_step = time.perf_counter(), self.step
        while self.step < last:
            self._stop.ask()
            yield self.step + 1
            self.step += 1
            self.samples += self._batches.global_batch
            stopping = self._stop.agreed() and self.step < last
            if self.step % self._settings.log_every_steps == 0 or self.step == last:
                self._report()
            if self.step % self._settings.checkpoint_every_steps == 0 or self.step == last or stopping:
                self._save()
            if stopping:
                self._procs.say(f"stopped at step {self.step} of {last}: {self._where_saved()}")
                raise Stopped

    def micro_batches(self) -> Iterator[MicroBatch]:
        """This rank's share of the step, cut into forward passes."""
        plan = self._batches
        share = torch.from_numpy(self._order.take(self.samples + self._procs.rank * plan.per_rank, plan.per_rank))
        for number, samples in enumerate(share.split(plan.micro_batch), start=1):
            is_last = number == plan.num_micro_batches
            yield MicroBatch(samples=samples, weight=1 / plan.num_micro_batches, is_last=is_last)

    def log(self, loss: torch.Tensor, *, tokens: int | None = None, **extras: float) -> None:
        """This rank's loss of the step, still on its device: it is fetched only if a line is due."""
        self._loss, self._tokens, self._extras = loss.detach(), tokens, extras

    def finish(self, **results: float) -> None:
        """End with a line that says what came out."""
        if self._progress:
            newest = self._checkpoints.newest_step if self._checkpoints else None
            of_last_step = self._progress.last if self._progress.last.get("step") == self.step else {}
            record = self._record(loss=None) | of_last_step | {"eta_s": 0, "checkpoint": newest} | results
            self._progress.record(record)
            self._progress.show(record)

    def _record(self, loss: float | None) -> Record:
        """What is known now, with rates since the last record."""
        steps = self.step - self._since_step
        elapsed_s = time.perf_counter() - self._since
        step_s = elapsed_s / steps if steps else None
        left = self._settings.steps - self.step
        rate = {"samples_per_s": step_s and self._batches.global_batch / step_s}
        if self._tokens is not None:
            rate = {"tokens_per_s": step_s and self._tokens / step_s}
        return {
            "step": self.step,
            "steps": self._settings.steps,
            "loss": loss,
            **{name: value and round(value, 1) for name, value in rate.items()},
            "mfu": None,
            "step_s": step_s and round(step_s, 6),
            "eta_s": None if step_s is None else round(step_s * max(left, 0), 1),
            "checkpoint": self._checkpoints.newest_step if self._checkpoints else None,
            **self._extras,
        }

    def _report(self) -> None:
        loss = self._procs.mean(self._loss.item())
        if self._progress:
            record = self._record(loss)
            self._progress.record(record)
            if self.step < self._settings.steps:  # the last step's line is for finish(), with the results
                self._progress.show(record)
        self._since, self._since_step = time.perf_counter(), self.step

    def _resume(self, checkpoints: Checkpoints) -> None:
        manifest = None if self._settings.no_resume else checkpoints.newest()
        if manifest is None:
            return
        path = checkpoints.path(manifest.step)
        state = state_of(self._model, self._optimizer)
        if difference := manifest.other_model(shapes_of(state)):
            raise ConfigurationError(
                f"checkpoint {path} is of another model: {difference}; "
                "restore the model's settings, start over with --no-resume, or name another --checkpoint-path"
            )
        if self._procs.rank < manifest.world_size:
            state["random"] = {str(self._procs.rank): random_state(self._procs.device)}
        checkpoints.load(manifest.step, state)
        set_state(self._model, self._optimizer, state)
        self._random = state.get("random", {}).get(str(self._procs.rank))
        self.step, self.samples = manifest.step, manifest.samples
        self._procs.say(f"resumed from {path}")

    def _save(self) -> None:
        if self._checkpoints:
            state = state_of(self._model, self._optimizer)
            shapes = shapes_of(state)
            state["random"] = {str(self._procs.rank): random_state(self._procs.device)}
            self._checkpoints.save(state, step=self.step, samples=self.samples, parameters=shapes)

    def _where_saved(self) -> str:
        return f"saved {self._checkpoints.path(self.step)}" if self._checkpoints else "not saved: no --checkpoint-path"


def _metrics_path(folder: Path | None) -> Path | None:
    return folder and folder / os.environ["TRAINYARD_RUN"] / "metrics.jsonl"
