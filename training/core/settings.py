"""The flags that every program has. A program's own `Settings` inherits them and adds its fields in the same style.

Previews read these classes as text, without importing them: annotations stay plain and defaults literal.
"""

from dataclasses import dataclass
from pathlib import Path

from training.core.exits import ConfigurationError

# Counts of which zero makes no sense.
_POSITIVE = ("steps", "log_every_steps", "checkpoint_every_steps", "checkpoint_keep")
_POSITIVE_BATCHES = ("global_batch", "micro_batch")


@dataclass(frozen=True, kw_only=True)
class StepSettings:
    """Flags of every program."""

    steps: int = 1000
    """Optimizer steps of the whole run, those before a resume included."""

    log_every_steps: int = 10
    """Steps from one line of progress to the next."""

    checkpoint_path: Path | None = None
    """Folder for checkpoints and metrics, shared by all nodes. None: nothing is written."""

    checkpoint_every_steps: int = 500
    """Steps from one checkpoint to the next; the last step and a stop are saved as well."""

    checkpoint_keep: int = 3
    """Newest checkpoints to keep."""

    no_resume: bool = False
    """Start at step 0, also after a restart; the checkpoints that are there go once the first new one is complete."""

    def __post_init__(self) -> None:
        self._require_positive(_POSITIVE)

    def _require_positive(self, names: tuple[str, ...]) -> None:
        for name in names:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigurationError(f"{flag(name)} {value}: must be at least 1")


@dataclass(frozen=True, kw_only=True)
class RunSettings(StepSettings):
    """Flags of every program that learns in batches."""

    seed: int = 0
    """Decides the initial weights and the order of the samples."""

    global_batch: int = 128
    """Samples of one optimizer step, over all processes."""

    micro_batch: int | None = None
    """Samples of one process in one forward pass; its share of a step is then accumulated. None: all at once."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_positive(_POSITIVE_BATCHES)


def flag(name: str) -> str:
    """A field's name as it is typed."""
    return f"--{name.replace('_', '-')}"
