"""Checkpoints that are either complete or not there: `<folder>/step-00000300/`.

Every rank writes its shards into a temporary sibling, rank 0 adds the manifest, and one rename makes the checkpoint
exist. A crash at any moment leaves at worst a temporary folder, which the next start removes. Reading takes the newest
whose files all match their manifest. The shards are torch.distributed.checkpoint's, so that another number of processes
can read them.
"""

import re
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException

from training.core.exits import ConfigurationError, SaveFailed
from training.core.manifest import FileRecord, Manifest, fsync_folder
from training.core.process import Processes

Value = TypeVar("Value")

_NAME = re.compile(r"step-(\d{8,})")
_TEMPORARY = ".tmp-"


class Checkpoints:
    """The checkpoints of one stack."""

    def __init__(self, folder: Path, *, keep: int, procs: Processes) -> None:
        self.newest_step: int | None = None
        """The newest complete checkpoint that this run has read or written."""
        self._folder = folder
        self._keep = keep
        self._procs = procs
        # A predecessor may still be dying, and the two must not write into one folder.
        self._writer = procs.from_first(uuid.uuid4().hex[:8])
        probe = folder / f"{_TEMPORARY}{self._writer}"
        try:
            self._on_first(lambda: probe.mkdir(parents=True))
        except OSError as error:
            raise ConfigurationError(f"--checkpoint-path: cannot write to {folder}: {error.strerror}") from None
        for rank, sees in enumerate(procs.from_all(probe.exists())):
            if not sees:
                raise ConfigurationError(
                    f"--checkpoint-path: rank {rank} does not see what rank 0 writes to {folder}: it is not shared"
                )
        if procs.is_first:
            self._sweep("*")

    def path(self, step: int) -> Path:
        return self._folder / f"step-{step:08d}"

    def newest(self) -> Manifest | None:
        """The newest checkpoint that is complete and undamaged; each that is passed over is named."""
        for step in self._procs.from_first(self._steps()):
            path = self.path(step)
            try:
                manifest = Manifest.read(path)
                damage = manifest.damage(path, rank=self._procs.rank, world_size=self._procs.world_size)
            except ValueError as error:
                damage = str(error)
            damages = [damage for damage in self._procs.from_all(damage) if damage]
            if not damages:
                self.newest_step = step
                return manifest
            self._procs.say(f"skipped checkpoint {path}: {damages[0]}")
        return None

    def load(self, step: int, state: dict[str, Any]) -> None:
        """Fill `state` in place, however many processes wrote it."""
        reader = dcp.FileSystemReader(self.path(step))
        try:
            dcp.load(state, storage_reader=reader, process_group=self._procs.control)
        except CheckpointException as error:
            cause = _cause(error)
            if isinstance(cause, OSError):
                raise cause from None
            # The parameters were compared before, so it is the optimizer that does not fit.
            raise ConfigurationError(f"checkpoint {self.path(step)} is of another program: {_reason(cause)}") from None

    def save(self, state: dict[str, Any], *, step: int, samples: int, parameters: dict[str, list[int]]) -> None:
        """Write a checkpoint; afterwards it is complete for all ranks, or all raise SaveFailed."""
        temporary = self._folder / f"{_TEMPORARY}{self.path(step).name}-{self._writer}"
        try:
            writer = dcp.FileSystemWriter(temporary, sync_files=True)
            dcp.save(state, storage_writer=writer, process_group=self._procs.control)
            files = self._on_all(lambda: self._own_files(temporary))
            manifest = Manifest(
                step=step,
                samples=samples,
                world_size=self._procs.world_size,
                parameters=parameters,
                files={name: record for own in files for name, record in own.items()},
            )
            self._on_first(lambda: self._complete(temporary, manifest))
        except (CheckpointException, OSError) as error:
            if self._procs.is_first:
                shutil.rmtree(temporary, ignore_errors=True)
            raise SaveFailed(
                f"cannot save checkpoint {self.path(step)}: {_reason(_cause(error))}; "
                + ("there is none yet" if self.newest_step is None else f"{self.path(self.newest_step)} is intact")
            ) from None
        self.newest_step = step
        if self._procs.is_first:
            self._prune(step)

    def _steps(self) -> list[int]:
        """Steps that have a folder, newest first."""
        names = (_NAME.fullmatch(path.name) for path in self._folder.iterdir())
        return sorted((int(name[1]) for name in names if name), reverse=True)

    def _own_files(self, temporary: Path) -> dict[str, FileRecord]:
        own = list(temporary.glob(f"__{self._procs.rank}_*"))
        if self._procs.is_first:
            own.append(temporary / ".metadata")
        return {path.name: FileRecord.of(path) for path in own}

    def _complete(self, temporary: Path, manifest: Manifest) -> None:
        manifest.write(temporary)
        fsync_folder(temporary)
        final = self.path(manifest.step)
        if final.exists():  # damaged, or from before a start with --no-resume
            self._set_aside(final)
        temporary.rename(final)
        fsync_folder(self._folder)

    def _prune(self, step: int) -> None:
        """Remove what is too old, and what lies ahead: it belongs to a history that this run has not continued."""
        steps = self._steps()
        try:
            for old in [other for other in steps if other <= step][self._keep :]:
                self._set_aside(self.path(old))
            for ahead in [other for other in steps if other > step]:
                self._set_aside(self.path(ahead))
                self._procs.say(f"removed checkpoint {self.path(ahead)}: this run is at step {step} and did not use it")
        except OSError as error:
            self._procs.say(f"cannot remove an old checkpoint: {error}")
        self._sweep(f"*-{self._writer}")

    def _set_aside(self, path: Path) -> None:
        """Take a checkpoint's name away first: half removed, it must not look like one."""
        path.rename(self._folder / f"{_TEMPORARY}removed-{path.name}-{self._writer}")

    def _sweep(self, pattern: str) -> None:
        for path in self._folder.glob(_TEMPORARY + pattern):
            shutil.rmtree(path, ignore_errors=True)

    def _on_all(self, action: Callable[[], Value]) -> list[Value]:
        """Every rank's result; if it fails on one, it fails on all."""
        outcomes = self._procs.from_all(_outcome(action))
        for outcome in outcomes:
            if isinstance(outcome, OSError):
                raise outcome
        return outcomes  # type: ignore[return-value]  # no OSError is left among them

    def _on_first(self, action: Callable[[], object]) -> None:
        self._on_all(action if self._procs.is_first else lambda: None)


def _outcome(action: Callable[[], Value]) -> Value | OSError:
    try:
        return action()
    except OSError as error:
        return error


def _cause(error: BaseException) -> BaseException:
    """What torch.distributed.checkpoint wraps: the failure of the lowest rank that failed."""
    return min(error.failures.items())[1][0] if isinstance(error, CheckpointException) else error


def _reason(error: BaseException) -> str:
    """An error in one line."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error).partition("\n")[0]
