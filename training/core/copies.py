"""Runs whose ranks all hold the same model, which rank 0 saves as plain files."""

from collections.abc import Callable
from pathlib import Path

from training.core.checkpoint_folder import CheckpointFolder
from training.core.manifest import FileRecord, Manifest, write_durably
from training.core.peers import Peers
from training.core.settings import StepSettings
from training.core.steps import Steps, checkpoint_folder
from training.core.stop_signal import StopEachStep

Files = dict[str, bytes]
"""Content by name."""


class CopiesRun(Steps):
    """One run of a program, from its first step or from its newest checkpoint to its last."""

    def __init__(
        self,
        settings: StepSettings,
        peers: Peers,
        *,
        samples_per_step: int,
        parameters: dict[str, list[int]],
        files: Callable[[], Files],
        restore: Callable[[Files], None],
    ) -> None:
        """`parameters` are the model's fingerprint; `restore` takes what `files` gave."""
        self._parameters, self._files, self._restore = parameters, files, restore
        folder = checkpoint_folder(settings)
        self._copies = CopyCheckpoints(folder, keep=settings.checkpoint_keep, peers=peers) if folder else None
        super().__init__(
            settings,
            peers,
            stop=StopEachStep(peers),
            samples_per_step=samples_per_step,
            checkpoints=self._copies,
        )

    def _load(self, manifest: Manifest) -> None:
        assert self._copies
        self._compare(manifest, self._parameters)
        self._restore(self._copies.load(manifest))

    def _save(self) -> None:
        if self._copies:
            files = self._files() if self._peers.is_first else {}
            self._copies.save(files, step=self.step, samples=self.samples, parameters=self._parameters)


class CopyCheckpoints(CheckpointFolder):
    """The checkpoints of one stack, written by rank 0 and read by all."""

    def load(self, manifest: Manifest) -> Files:
        return {name: (self.path(manifest.step) / name).read_bytes() for name in manifest.files}

    def save(self, files: Files, *, step: int, samples: int, parameters: dict[str, list[int]]) -> None:
        """Write a checkpoint; afterwards it is complete for all ranks, or all raise SaveFailed."""
        with self._saving(step) as temporary:

            def write() -> None:
                temporary.mkdir()
                manifest = Manifest(
                    step=step,
                    samples=samples,
                    world_size=self._peers.world_size,
                    parameters=parameters,
                    files={name: _written(temporary / name, content) for name, content in files.items()},
                )
                self._complete(temporary, manifest)

            self._on_first(write)


def _written(path: Path, content: bytes) -> FileRecord:
    write_durably(path, content)
    return FileRecord.of(path)
