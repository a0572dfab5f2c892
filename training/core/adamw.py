"""AdamW as language models are trained with it, and its learning rate as a function of the step alone.

The rate needs no state of its own: a run that resumes at a step computes what it would have been.
"""

import math

import torch
from torch import nn

from training.core.transformer import full_shape
from training.core.transformer_settings import TransformerSettings

# GPT-3's (Brown et al. 2020, appendix B), and most models' since.
_BETAS = (0.9, 0.95)
# Where the flags leave it open.
_WARMUP_SHARE = 1 / 50
_MIN_LR_SHARE = 1 / 10


def adamw(model: nn.Module, settings: TransformerSettings) -> torch.optim.AdamW:
    """Weight decay pulls at matrices; a norm's scale has no reason to be near zero."""
    parameters = list(model.parameters())
    matrices = [parameter for parameter in parameters if len(full_shape(parameter)) == 2]
    norms = [parameter for parameter in parameters if len(full_shape(parameter)) == 1]
    groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": norms, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=settings.lr, betas=_BETAS, fused=matrices[0].is_cuda)


def set_learning_rate(optimizer: torch.optim.Optimizer, step: int, settings: TransformerSettings) -> None:
    lr = learning_rate(step, settings)
    for group in optimizer.param_groups:
        group["lr"] = lr


def learning_rate(step: int, settings: TransformerSettings) -> float:
    """The rate of a step, counted from 1: a line up to --lr, then half a cosine down to --min-lr at the last step."""
    steps, highest = settings.steps, settings.lr
    lowest = highest * _MIN_LR_SHARE if settings.min_lr is None else settings.min_lr
    warmup_steps = int(steps * _WARMUP_SHARE) if settings.warmup_steps is None else settings.warmup_steps
    if step <= warmup_steps:
        return highest * step / warmup_steps
    progress = (step - warmup_steps) / (steps - warmup_steps)
    return lowest + (highest - lowest) * (1 + math.cos(math.pi * progress)) / 2
