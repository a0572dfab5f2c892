"""The flags that all programs training the transformer have."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from training.core.exits import ConfigurationError
from training.core.settings import RunSettings, flag
from training.core.transformer import Shape

_POSITIVE = ("layers", "hidden", "heads", "kv_heads", "vocab", "sequence")


@dataclass(frozen=True, kw_only=True)
class TransformerSettings(RunSettings):
    """Shape, precision, data and optimizer."""

    steps: int = 500
    """Optimizer steps of the whole run, those before a resume included."""

    global_batch: int = 32
    """Samples of one optimizer step, over all processes; a sample is --sequence tokens."""

    layers: int = 4
    """Blocks of attention and feed-forward."""

    hidden: int = 128
    """Width of the residual stream; the feed-forward layers are 8/3 as wide."""

    heads: int = 4
    """Query heads of each attention."""

    kv_heads: int = 2
    """Key and value heads, each shared by an equal number of query heads."""

    vocab: int = 256
    """Rows of the embedding: at least the tokens of the data."""

    sequence: int = 128
    """Tokens of a sample."""

    precision: Literal["bf16", "fp32"] = "fp32"
    """Of the matrix products; weights, optimizer and the reduction of gradients are fp32 in both."""

    data: Path | None = None
    """Token file, as training.prepare_tokens writes them. None: the bytes of Python's language reference."""

    lr: float = 1e-3
    """Highest learning rate of AdamW."""

    min_lr: float | None = None
    """Learning rate of the last step. None: a tenth of --lr."""

    warmup_steps: int | None = None
    """Steps until --lr is reached. None: one in fifty of --steps."""

    weight_decay: float = 0.1
    """Of the matrices; norms have none."""

    clip_grad: float = 1.0
    """Largest norm of the gradient; longer ones are scaled down to it."""

    activation_checkpointing: bool = False
    """Keep one activation per layer and compute the others again: a third more arithmetic for far less memory."""

    compile: bool = False
    """Compile each layer with torch.compile; needs a C++ compiler."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in _POSITIVE:
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{flag(name)} {getattr(self, name)}: must be at least 1")
        for name in ("lr", "clip_grad"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigurationError(f"{flag(name)} {getattr(self, name)}: must be above 0")
        if not 0 <= self.weight_decay < math.inf:
            raise ConfigurationError(f"--weight-decay {self.weight_decay}: must be 0 or above")
        if self.min_lr is not None and not 0 <= self.min_lr <= self.lr:
            raise ConfigurationError(f"--min-lr {self.min_lr}: must be between 0 and --lr {self.lr}")
        if self.warmup_steps is not None and self.warmup_steps < 0:
            raise ConfigurationError(f"--warmup-steps {self.warmup_steps}: must be 0 or above")
        self.shape  # noqa: B018  # heads that do not divide are refused before any process group forms

    @property
    def shape(self) -> Shape:
        return Shape(
            layers=self.layers,
            hidden=self.hidden,
            heads=self.heads,
            kv_heads=self.kv_heads,
            vocab=self.vocab,
            sequence=self.sequence,
        )
