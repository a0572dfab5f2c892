"""Checkpoints of programs on torch, whatever shards their models have.

Every rank writes its shards, which are torch.distributed.checkpoint's, so that another number of processes can read
them.
"""

from pathlib import Path
from typing import Any

import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException

from training.core.checkpoint_folder import CheckpointFolder
from training.core.exits import ConfigurationError
from training.core.manifest import FileRecord, Manifest
from training.core.process import Processes


class Checkpoints(CheckpointFolder):
    """The checkpoints of one stack, in shards."""

    def __init__(self, folder: Path, *, keep: int, procs: Processes) -> None:
        super().__init__(folder, keep=keep, peers=procs)
        self._procs = procs

    def load(self, step: int, state: dict[str, Any]) -> None:
        """Fill `state` in place, however many processes wrote it."""
        if not (self.path(step) / ".metadata").exists():
            raise ConfigurationError(
                f"checkpoint {self.path(step)} is of another program: it holds none of torch's shards; "
                "restore that program, start over with --no-resume, or name another --checkpoint-path"
            )
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
        with self._saving(step) as temporary:
            self._write(state, temporary)
            files = self._on_all(lambda: self._own_files(temporary))
            manifest = Manifest(
                step=step,
                samples=samples,
                world_size=self._procs.world_size,
                parameters=parameters,
                files={name: record for own in files for name, record in own.items()},
            )
            self._on_first(lambda: self._complete(temporary, manifest))

    def _write(self, state: dict[str, Any], temporary: Path) -> None:
        """Write this rank's files; raises OSError."""
        writer = dcp.FileSystemWriter(temporary, sync_files=True)
        try:
            dcp.save(state, storage_writer=writer, process_group=self._procs.control)
        except CheckpointException as error:
            raise OSError(_reason(_cause(error))) from None

    def _own_files(self, temporary: Path) -> dict[str, FileRecord]:
        own = list(temporary.glob(f"__{self._procs.rank}_*"))
        if self._procs.is_first:
            own.append(temporary / ".metadata")
        return {path.name: FileRecord.of(path) for path in own}


def _cause(error: BaseException) -> BaseException:
    """What torch.distributed.checkpoint wraps: the failure of the lowest rank that failed."""
    return min(error.failures.items())[1][0] if isinstance(error, CheckpointException) else error


def _reason(error: BaseException) -> str:
    """An error in one line."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error).partition("\n")[0]
