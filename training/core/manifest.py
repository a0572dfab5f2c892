"""The list of contents of one checkpoint: what it holds, and how each of its files can be told from a damaged one.

It is written last, so a folder without one is not a checkpoint.
"""

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

NAME = "manifest.json"


@dataclass(frozen=True)
class FileRecord:
    """What a file has to be."""

    size_bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> "FileRecord":
        with path.open("rb") as file:
            return cls(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What one checkpoint holds."""

    step: int
    samples: int
    """Position in the data order: samples taken so far."""
    world_size: int
    """Processes that wrote it; each left the state of its random numbers."""
    parameters: dict[str, list[int]]
    """Name and shape of the model's parameters: its fingerprint."""
    files: dict[str, FileRecord]

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Raises ValueError, with the reason, for what is no complete checkpoint."""
        try:
            body = json.loads((folder / NAME).read_text())
            files = {name: FileRecord(**record) for name, record in body.pop("files").items()}
            return cls(files=files, **body)
        except FileNotFoundError:
            raise ValueError(f"it has no {NAME}") from None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"its {NAME} cannot be read ({error})") from None

    def write(self, folder: Path) -> None:
        write_durably(folder / NAME, json.dumps(asdict(self), indent=1).encode())

    def damage(self, folder: Path, *, rank: int, world_size: int) -> str | None:
        """What is wrong with this rank's share of the files; None when they are whole."""
        for name in sorted(self.files)[rank::world_size]:
            expected = self.files[name]
            try:
                size_bytes = (folder / name).stat().st_size
                if size_bytes != expected.size_bytes:
                    return f"{name} has {size_bytes} bytes instead of {expected.size_bytes}"
                if FileRecord.of(folder / name) != expected:
                    return f"{name} does not have the checksum it was written with"
            except OSError as error:
                return f"{name} cannot be read ({error.strerror})"
        return None

    def other_model(self, parameters: dict[str, list[int]]) -> str | None:
        """How the model in the checkpoint differs from one with these parameters; None when it does not."""
        for name in (*self.parameters, *parameters):
            there, here = self.parameters.get(name), parameters.get(name)
            if there != here:
                return f"parameter {name} is {there or 'absent'} there and {here or 'absent'} here"
        return None


def write_durably(path: Path, content: bytes) -> None:
    """As a file that a crash of the machine does not take back."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def fsync_folder(folder: Path) -> None:
    """Make the names in a folder durable, as fsync does for a file's content."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
