"""Handwritten digits as tensors of torch."""

from dataclasses import dataclass
from pathlib import Path

import torch

from training import digit_arrays
from training.digit_arrays import SIDE, DigitArrays

__all__ = ["SIDE", "Digits", "bundled_digits", "mnist_digits"]


@dataclass(frozen=True)
class Digits:
    """Images of 28 × 28 in the range 0 to 255, and what each shows."""

    images: torch.Tensor
    labels: torch.Tensor

    @classmethod
    def of(cls, arrays: DigitArrays) -> "Digits":
        return cls(torch.from_numpy(arrays.images), torch.from_numpy(arrays.labels))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, which: torch.Tensor | slice) -> "Digits":
        return Digits(self.images[which], self.labels[which])

    def to(self, device: torch.device) -> "Digits":
        return Digits(self.images.to(device), self.labels.to(device))


def bundled_digits() -> tuple[Digits, Digits]:
    train, held_out = digit_arrays.bundled_digits()
    return Digits.of(train), Digits.of(held_out)


def mnist_digits(folder: Path) -> tuple[Digits, Digits]:
    train, held_out = digit_arrays.mnist_digits(folder)
    return Digits.of(train), Digits.of(held_out)
