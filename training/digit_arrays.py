"""Handwritten digits as arrays: scikit-learn's, which ship with the package, or MNIST's own files."""

import gzip
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

from training.core.exits import ConfigurationError

SIDE = 28
# Of MNIST's training images, in units of 0 to 1.
MEAN, DEVIATION = 0.1307, 0.3081
# An idx file opens with two zero bytes, the type of its numbers (8: unsigned bytes) and the number of its dimensions.
_UNSIGNED_BYTES = b"\x00\x00\x08"
_BUNDLED_SIDE = 8


@dataclass(frozen=True)
class DigitArrays:
    """Images of 28 × 28 in the range 0 to 255, and what each shows."""

    images: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, which: npt.NDArray[np.int64] | slice) -> "DigitArrays":
        return DigitArrays(self.images[which], self.labels[which])


def bundled_digits() -> tuple[DigitArrays, DigitArrays]:
    """scikit-learn's 1,797 digits of 8 × 8 pixels, enlarged: a training set and a fifth held out."""
    bundle = load_digits()
    spread = _enlarging(_BUNDLED_SIDE, SIDE)
    images = (spread @ (bundle.images * (255 / 16)) @ spread.T).round().astype(np.uint8)
    everything = DigitArrays(images, bundle.target.astype(np.int64))
    # The same split for every seed, so that accuracies compare.
    shuffled = np.random.default_rng(0).permutation(len(everything))
    num_held_out = len(everything) // 5
    return everything[shuffled[num_held_out:]], everything[shuffled[:num_held_out]]


def _enlarging(small: int, large: int) -> npt.NDArray[np.float64]:
    """Linear interpolation along one side, as a matrix: between the centres of pixels, and constant beyond them."""
    centres = np.clip((np.arange(large) + 0.5) * small / large - 0.5, 0, small - 1)
    return np.maximum(0, 1 - np.abs(centres[:, None] - np.arange(small)))


def mnist_digits(folder: Path) -> tuple[DigitArrays, DigitArrays]:
    """MNIST from its four idx files, plain or gzipped: 60,000 to train on and 10,000 held out."""
    return _idx_pair(folder, "train"), _idx_pair(folder, "t10k")


def _idx_pair(folder: Path, part: str) -> DigitArrays:
    images = _read_idx(folder, f"{part}-images-idx3-ubyte", dimensions=3)
    labels = _read_idx(folder, f"{part}-labels-idx1-ubyte", dimensions=1)
    if images.shape[1:] != (SIDE, SIDE):
        raise ConfigurationError(f"--data {folder}: {part} images are {tuple(images.shape[1:])}, not {SIDE} × {SIDE}")
    if len(images) != len(labels) or len(images) == 0:
        raise ConfigurationError(f"--data {folder}: {part} has {len(images)} images and {len(labels)} labels")
    if labels.max() > 9:
        raise ConfigurationError(f"--data {folder}: {part} has a label {int(labels.max())}: they must be digits")
    return DigitArrays(images, labels.astype(np.int64))


def _read_idx(folder: Path, name: str, *, dimensions: int) -> npt.NDArray[np.uint8]:
    path = next((path for path in (folder / name, folder / f"{name}.gz") if path.exists()), None)
    if path is None:
        raise ConfigurationError(f"--data {folder}: there is no {name}, nor {name}.gz")
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError) as error:
        raise ConfigurationError(f"--data: cannot read {path}: {error}") from None
    header = 4 + 4 * dimensions
    if content[:4] != _UNSIGNED_BYTES + bytes([dimensions]) or len(content) < header:
        raise ConfigurationError(f"--data: {path} is not an idx file of bytes in {dimensions} dimensions")
    shape = [int.from_bytes(content[place : place + 4], "big") for place in range(4, header, 4)]
    if len(content) - header != math.prod(shape):
        raise ConfigurationError(
            f"--data: {path} holds {len(content) - header} bytes of data, and its header says {math.prod(shape)}"
        )
    return np.frombuffer(bytearray(content[header:]), dtype=np.uint8).reshape(shape)
