"""Data-parallel copies of a model whose gradients round the same way in every run."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def replicate(model: nn.Module, example: torch.Tensor) -> DistributedDataParallel:
    """One copy of the model per rank, kept alike; `example` is an input for it, and is not learned from.

    DDP regroups the gradients after its first backward pass, and three or more ranks then round their sums differently.
    One pass ahead of the first step puts that behind us: a resumed run then repeats an uninterrupted one bit for bit.
    """
    replicas = DistributedDataParallel(model, gradient_as_bucket_view=True)
    replicas(example).sum().backward()
    replicas.zero_grad()
    return replicas
