"""A decoder-only transformer in Llama's style, from one million parameters to seventy billion by its shape alone.

RMSNorm before each sublayer, rotary positions, grouped-query attention, a SwiGLU feed-forward layer, no biases, no
dropout, and an output matrix of its own. (Touvron et al. 2023, arXiv:2302.13971 and 2307.09288.)
"""

import hashlib
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import nn
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from training.core.exits import ConfigurationError

# Llama 2's: the slowest rotation takes some 60,000 positions for one turn.
_ROPE_BASE = 10_000.0
# GPT-2's. Matrices that write into the residual stream get less, for each of them adds to its variance.
_DEVIATION = 0.02
_WRITES_TO_RESIDUAL = ("attention.output.weight", "feed_forward.down.weight")
# Tensor cores want multiples of 8 and up; 64 keeps that true of each rank's share of a row as well.
_FEED_FORWARD_MULTIPLE = 64

Rotation = tuple[torch.Tensor, torch.Tensor]
"""Cosine and sine of each position's angles, [sequence, head size / 2] each."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What decides the size of a transformer."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    vocab: int
    sequence: int

    def __post_init__(self) -> None:
        if self.hidden % self.heads or self.head_size % 2:
            step = 2 * self.heads
            above = math.ceil(self.hidden / step) * step
            raise ConfigurationError(
                f"--hidden {self.hidden} cannot be cut into --heads {self.heads} of an even size: "
                f"take a multiple of {step}, such as {above}"
            )
        if self.heads % self.kv_heads:
            raise ConfigurationError(
                f"--heads {self.heads} is no multiple of --kv-heads {self.kv_heads}: "
                "each key and value serves an equal number of heads"
            )

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads

    @property
    def feed_forward(self) -> int:
        """8/3 of the hidden size, so that SwiGLU's three matrices weigh what two of 4 × hidden would."""
        return math.ceil(self.hidden * 8 / 3 / _FEED_FORWARD_MULTIPLE) * _FEED_FORWARD_MULTIPLE


class Attention(nn.Module):  # type: ignore[misc]  # torch is not analysed: see pyproject.toml
    """Causal attention in which several query heads share one key and value."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.head_size = shape.head_size
        kv_size = shape.kv_heads * shape.head_size
        self.query = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.key = nn.Linear(shape.hidden, kv_size, bias=False)
        self.value = nn.Linear(shape.hidden, kv_size, bias=False)
        self.output = nn.Linear(shape.hidden, shape.hidden, bias=False)

    def forward(self, x: torch.Tensor, rotation: Rotation) -> torch.Tensor:
        query, key, value = (
            projection(x).unflatten(-1, (-1, self.head_size)).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        )
        query, key = rotate(query, rotation), rotate(key, rotation)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        return self.output(mixed.transpose(1, 2).flatten(-2))


class FeedForward(nn.Module):  # type: ignore[misc]
    """SwiGLU (Shazeer 2020, arXiv:2002.05202)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate = nn.Linear(shape.hidden, shape.feed_forward, bias=False)
        self.up = nn.Linear(shape.hidden, shape.feed_forward, bias=False)
        self.down = nn.Linear(shape.feed_forward, shape.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):  # type: ignore[misc]
    """One layer: attention and feed-forward, each added to the residual stream."""

    def __init__(self, shape: Shape, *, recompute: bool) -> None:
        super().__init__()
        self.recompute = recompute
        self.attention_norm = nn.RMSNorm(shape.hidden, eps=1e-5)
        self.attention = Attention(shape)
        self.feed_forward_norm = nn.RMSNorm(shape.hidden, eps=1e-5)
        self.feed_forward = FeedForward(shape)

    def forward(self, x: torch.Tensor, rotation: Rotation) -> torch.Tensor:
        if self.recompute:
            return checkpoint(self._layer, x, rotation, use_reentrant=False, preserve_rng_state=False)
        return self._layer(x, rotation)

    def _layer(self, x: torch.Tensor, rotation: Rotation) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x), rotation)
        return x + self.feed_forward(self.feed_forward_norm(x))


class Transformer(nn.Module):  # type: ignore[misc]
    """Token numbers in, [batch, sequence]; the next token's logits out, [batch, sequence, vocab]."""

    def __init__(self, shape: Shape, *, recompute: bool = False) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocab, shape.hidden)
        self.blocks = nn.ModuleList(Block(shape, recompute=recompute) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden, eps=1e-5)
        self.output = nn.Linear(shape.hidden, shape.vocab, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        rotation = rotation_of(tokens.shape[1], self.shape.head_size, tokens.device)
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, rotation)
        return self.output(self.norm(x))


def rotation_of(num_positions: int, head_size: int, device: torch.device) -> Rotation:
    """Rotary positions (Su et al. 2021, arXiv:2104.09864); computed each time, which costs less than keeping them."""
    speeds = _ROPE_BASE ** (-torch.arange(0, head_size, 2, device=device, dtype=torch.float32) / head_size)
    angles = torch.outer(torch.arange(num_positions, device=device, dtype=torch.float32), speeds)
    return angles.cos(), angles.sin()


def rotate(x: torch.Tensor, rotation: Rotation) -> torch.Tensor:
    """Turn each pair (i, i + half) of a head's numbers by its position's angle; in fp32, for far positions' sake."""
    cos, sin = rotation
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)


def next_token_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy in nats, in fp32 whatever the logits are."""
    return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def num_parameters(model: Transformer) -> int:
    """Of the whole model, however it is sharded."""
    return sum(full_shape(parameter).numel() for parameter in model.parameters())


def full_shape(parameter: nn.Parameter) -> torch.Size:
    """Of the whole tensor, however it is sharded: where DeepSpeed keeps a part of it, it notes the shape beside it."""
    return getattr(parameter, "ds_shape", parameter.shape)


def compile_blocks(model: Transformer) -> None:
    """In place, so that names stay; block by block, for all are alike and what is compiled once serves them all."""
    for block in model.blocks:
        block.compile()


@torch.no_grad()  # type: ignore[untyped-decorator]
def initialise(
    model: Transformer, *, seed: int, whole: Callable[[nn.Parameter], AbstractContextManager[object]] = nullcontext
) -> None:
    """Draw the weights, each from a generator of its own: they are the same however the model is sharded.

    `whole` makes a parameter whole for as long as it is drawn, where it is not already or a DTensor.
    """
    residual_deviation = _DEVIATION / math.sqrt(2 * model.shape.layers)
    for name, parameter in model.named_parameters():
        deviation = residual_deviation if name.endswith(_WRITES_TO_RESIDUAL) else _DEVIATION
        with whole(parameter):
            _draw(parameter, deviation=deviation, seed=_mixed(seed, name))


def _draw(parameter: nn.Parameter, *, deviation: float, seed: int) -> None:
    if parameter.ndim == 1:
        parameter.fill_(1.0)
        return
    generator = torch.Generator(parameter.device).manual_seed(seed)
    full = torch.empty(parameter.shape, device=parameter.device).normal_(0, deviation, generator=generator)
    if isinstance(parameter, DTensor):
        # Every rank has drawn the whole, so that each can keep its part without a word to the others.
        full = distribute_tensor(full, parameter.device_mesh, parameter.placements, src_data_rank=None)
    parameter.copy_(full)


def _mixed(seed: int, name: str) -> int:
    """One seed out of a number and a name."""
    digest = hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1  # manual_seed takes 63 bits and a sign
