"""The steps of a run, whatever library computes them: resume, stop, save, report."""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from training.core.checkpoint_folder import CheckpointFolder
from training.core.exits import ConfigurationError, Stopped
from training.core.manifest import Manifest
from training.core.peers import Peers
from training.core.progress import Progress, Record
from training.core.settings import StepSettings


class Scalar(Protocol):
    """A number that may still be on its device."""

    def item(self) -> float: ...


class Stop(Protocol):
    """How all ranks learn at the same step that one of them was told to stop."""

    def ask(self) -> None: ...

    def agreed(self) -> bool: ...


class Steps(ABC):
    """One run of a program, from its first step or from its newest checkpoint to its last."""

    def __init__(
        self,
        settings: StepSettings,
        peers: Peers,
        *,
        stop: Stop,
        samples_per_step: int,
        checkpoints: CheckpointFolder | None,
    ) -> None:
        self.step = 0
        """Optimizer steps that are done."""
        self.samples = 0
        """Position in the data order."""
        self._settings, self._peers, self._stop = settings, peers, stop
        self._samples_per_step = samples_per_step
        self._checkpoints = checkpoints
        if checkpoints:
            self._resume(checkpoints)
        folder = checkpoint_folder(settings)
        self._progress = Progress(_metrics_path(folder), after_step=self.step) if peers.is_first else None
        self._loss: Scalar
        self._tokens: int | None = None
        self._extras: dict[str, float] = {}

    @abstractmethod
    def _load(self, manifest: Manifest) -> None:
        """Continue from a checkpoint; `_compare` first, that it is of this model."""

    @abstractmethod
    def _save(self) -> None:
        """Write a checkpoint of this step, if the run has any."""

    def steps(self) -> Iterator[int]:
        """The number of each step that is left, from 1; saves, reports and stops between them."""
        last = self._settings.steps
        if self.step >= last:
            self._peers.say(f"step {self.step} of {last} is already trained: nothing to do")
        self._since, self._since_step = time.perf_counter(), self.step
        while self.step < last:
            self._stop.ask()
            yield self.step + 1
            self.step += 1
            self.samples += self._samples_per_step
            stopping = self._stop.agreed() and self.step < last
            if self.step % self._settings.log_every_steps == 0 or self.step == last:
                self._report()
            if self.step % self._settings.checkpoint_every_steps == 0 or self.step == last or stopping:
                self._save()
            if stopping:
                self._peers.say(f"stopped at step {self.step} of {last}: {self._where_saved()}")
                raise Stopped

    def log(self, loss: Scalar, *, tokens: int | None = None, **extras: float) -> None:
        """This rank's loss of the step, still on its device: it is fetched only if a line is due."""
        self._loss, self._tokens, self._extras = loss, tokens, extras

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
        rate = {"samples_per_s": step_s and self._samples_per_step / step_s}
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
        loss = self._peers.mean(self._loss.item())
        if self._progress:
            record = self._record(loss)
            self._progress.record(record)
            if self.step < self._settings.steps:  # the last step's line is for finish(), with the results
                self._progress.show(record)
        self._since, self._since_step = time.perf_counter(), self.step

    def _resume(self, checkpoints: CheckpointFolder) -> None:
        manifest = None if self._settings.no_resume else checkpoints.newest()
        if manifest is None:
            return
        self._load(manifest)
        self.step, self.samples = manifest.step, manifest.samples
        self._peers.say(f"resumed from {checkpoints.path(manifest.step)}")

    def _compare(self, manifest: Manifest, parameters: dict[str, list[int]]) -> None:
        assert self._checkpoints
        if difference := manifest.other_model(parameters):
            raise ConfigurationError(
                f"checkpoint {self._checkpoints.path(manifest.step)} is of another model: {difference}; "
                "restore the model's settings, start over with --no-resume, or name another --checkpoint-path"
            )

    def _where_saved(self) -> str:
        return f"saved {self._checkpoints.path(self.step)}" if self._checkpoints else "not saved: no --checkpoint-path"


def checkpoint_folder(settings: StepSettings) -> Path | None:
    return settings.checkpoint_path and settings.checkpoint_path / os.environ["TRAINYARD_STACK"]


def _metrics_path(folder: Path | None) -> Path | None:
    return folder and folder / os.environ["TRAINYARD_RUN"] / "metrics.jsonl"
