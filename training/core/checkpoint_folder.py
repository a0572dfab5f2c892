"""A folder of checkpoints that are either complete or not there: `step-00000300/`.

Whoever saves fills a temporary sibling, rank 0 adds the manifest, and one rename makes the checkpoint exist. A crash at
any moment leaves at worst a temporary folder, which the next start removes. Reading takes the newest whose files all
match their manifest.
"""

import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from training.core.exits import ConfigurationError, SaveFailed
from training.core.manifest import Manifest, fsync_folder
from training.core.peers import Peers, Value

_NAME = re.compile(r"step-(\d{8,})")
_TEMPORARY = ".tmp-"


class CheckpointFolder:
    """The checkpoints of one stack; what is in one, and how it is written, its heirs say."""

    def __init__(self, folder: Path, *, keep: int, peers: Peers) -> None:
        self.newest_step: int | None = None
        """The newest complete checkpoint that this run has read or written."""
        self._folder = folder
        self._keep = keep
        self._peers = peers
        # A predecessor may still be dying, and the two must not write into one folder.
        self._writer = peers.from_first(uuid.uuid4().hex[:8])
        probe = folder / f"{_TEMPORARY}{self._writer}"
        try:
            self._on_first(lambda: probe.mkdir(parents=True))
        except OSError as error:
            raise ConfigurationError(f"--checkpoint-path: cannot write to {folder}: {error.strerror}") from None
        for rank, sees in enumerate(peers.from_all(probe.exists())):
            if not sees:
                raise ConfigurationError(
                    f"--checkpoint-path: rank {rank} does not see what rank 0 writes to {folder}: it is not shared"
                )
        if peers.is_first:
            self._sweep("*")

    def path(self, step: int) -> Path:
        return self._folder / f"step-{step:08d}"

    def newest(self) -> Manifest | None:
        """The newest checkpoint that is complete and undamaged; each that is passed over is named."""
        for step in self._peers.from_first(self._steps()):
            path = self.path(step)
            try:
                manifest = Manifest.read(path)
                damage = manifest.damage(path, rank=self._peers.rank, world_size=self._peers.world_size)
            except ValueError as error:
                damage = str(error)
            damages = [damage for damage in self._peers.from_all(damage) if damage]
            if not damages:
                self.newest_step = step
                return manifest
            self._peers.say(f"skipped checkpoint {path}: {damages[0]}")
        return None

    @contextmanager
    def _saving(self, step: int) -> Iterator[Path]:
        """A temporary folder to fill and complete; then the checkpoint is there, or all ranks raise SaveFailed."""
        temporary = self._folder / f"{_TEMPORARY}{self.path(step).name}-{self._writer}"
        try:
            yield temporary
        except OSError as error:
            if self._peers.is_first:
                shutil.rmtree(temporary, ignore_errors=True)
            raise SaveFailed(
                f"cannot save checkpoint {self.path(step)}: {error.strerror or error}; "
                + ("there is none yet" if self.newest_step is None else f"{self.path(self.newest_step)} is intact")
            ) from None
        self.newest_step = step
        if self._peers.is_first:
            self._prune(step)

    def _steps(self) -> list[int]:
        """Steps that have a folder, newest first."""
        names = (_NAME.fullmatch(path.name) for path in self._folder.iterdir())
        return sorted((int(name[1]) for name in names if name), reverse=True)

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
                self._peers.say(f"removed checkpoint {self.path(ahead)}: this run is at step {step} and did not use it")
        except OSError as error:
            self._peers.say(f"cannot remove an old checkpoint: {error}")
        self._sweep(f"*-{self._writer}")

    def _set_aside(self, path: Path) -> None:
        """Take a checkpoint's name away first: half removed, it must not look like one."""
        path.rename(self._folder / f"{_TEMPORARY}removed-{path.name}-{self._writer}")

    def _sweep(self, pattern: str) -> None:
        for path in self._folder.glob(_TEMPORARY + pattern):
            shutil.rmtree(path, ignore_errors=True)

    def _on_all(self, action: Callable[[], Value]) -> list[Value]:
        """Every rank's result; if it fails on one, it fails on all."""
        outcomes = self._peers.from_all(_outcome(action))
        for outcome in outcomes:
            if isinstance(outcome, OSError):
                raise outcome
        return outcomes  # type: ignore[return-value]  # no OSError is left among them

    def _on_first(self, action: Callable[[], object]) -> None:
        self._on_all(action if self._peers.is_first else lambda: None)


def _outcome(action: Callable[[], Value]) -> Value | OSError:
    try:
        return action()
    except OSError as error:
        return error
