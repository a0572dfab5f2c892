"""This process among its peers, whatever library they talk through."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Peers(ABC):
    """What loops and checkpoints need to know of the other processes, and to ask of them."""

    rank: int
    world_size: int

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    @abstractmethod
    def from_first(self, value: Value) -> Value:
        """Rank 0's value, on every rank."""

    @abstractmethod
    def from_all(self, value: Value) -> list[Value]:
        """Every rank's value, by rank, on every rank."""

    def mean(self, value: float) -> float:
        """The mean over all ranks, on every rank."""
        return sum(self.from_all(value)) / self.world_size

    def say(self, line: str) -> None:
        """Print once, not once for each rank."""
        if self.is_first:
            print(line, flush=True)


class Alone(Peers):
    """A world of one."""

    def from_first(self, value: Value) -> Value:
        return value

    def from_all(self, value: Value) -> list[Value]:
        return [value]
