"""Checkpoints of TensorFlow programs: tf.train.Checkpoint's files, which any number of workers can read.

Every replica holds the whole state, so worker 0's copy is the one that counts.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf

from training.core.checkpoint_folder import CheckpointFolder
from training.core.exits import ConfigurationError
from training.core.manifest import FileRecord, Manifest

_PREFIX = "state"


class Checkpoints(CheckpointFolder):
    """The checkpoints of one stack; a state is a tf.train.Checkpoint."""

    def load(self, step: int, state: Any) -> None:
        """Fill the state's objects in place."""
        try:
            state.read(str(self.path(step) / _PREFIX)).assert_consumed()
        except (AssertionError, ValueError) as error:
            # The parameters were compared before, so it is the optimizer that does not fit.
            reason = str(error).partition("\n")[0]
            raise ConfigurationError(f"checkpoint {self.path(step)} is of another program: {reason}") from None

    def save(self, state: Any, *, step: int, samples: int, parameters: dict[str, list[int]]) -> None:
        """Write a checkpoint; afterwards it is complete for all ranks, or all raise SaveFailed."""
        # All write: a variable that is summed up on reading, such as the averages of a BatchNormalization, takes all.
        with self._saving(step) as temporary, tempfile.TemporaryDirectory(prefix="trainyard-") as unused:
            self._on_all(lambda: _write(state, temporary if self._peers.is_first else Path(unused)))

            def complete() -> None:
                manifest = Manifest(
                    step=step,
                    samples=samples,
                    world_size=self._peers.world_size,
                    parameters=parameters,
                    files={path.name: FileRecord.of(path) for path in temporary.iterdir()},
                )
                self._complete(temporary, manifest)

            self._on_first(complete)


def _write(state: Any, folder: Path) -> None:
    try:
        state.write(str(folder / _PREFIX))
    except tf.errors.OpError as error:
        raise OSError(error.message) from None
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
