"""MFU, model FLOPs utilisation: the share of the devices' peak that the model's own arithmetic takes.

PaLM's convention (Chowdhery et al. 2022, arXiv:2204.02311, appendix B), per token, forward and backward::

    FLOPs per token = 6 × matrix weights + 12 × layers × hidden × sequence
    MFU             = tokens per second × FLOPs per token / (devices × peak FLOP/s of a device)

Matrix weights are all but the norms and the embedding table, which is looked up and not multiplied. Attention counts in
full; conventions that halve it, since half is masked, give lower figures for the same speed, so compare tokens per
second first. What activation checkpointing computes twice counts once.
"""

import re

import torch
from torch import nn

from training.core.loop import Run
from training.core.process import Processes
from training.core.progress import Record
from training.core.transformer import Transformer, full_shape
from training.core.transformer_settings import TransformerSettings

# Dense bf16 FLOP/s of the variants that EC2 has, from NVIDIA's data sheets; A10G: AWS's.
_PEAK_BF16 = {
    "A10G": 70e12,
    "L4": 121e12,
    "L40S": 362e12,
    "A100": 312e12,
    "H100": 989e12,
    "H200": 989e12,
    "B200": 2250e12,
}
# Variants of the same chips that are slower.
_OTHER_VARIANTS = {"PCIe", "NVL"}


class TransformerRun(Run):
    """A run that also reports its MFU; null where the peak is not known, and in fp32, which it does not concern."""

    def __init__(
        self,
        settings: TransformerSettings,
        procs: Processes,
        *,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        num_samples: int,
        flops_per_token: int,
    ) -> None:
        super().__init__(settings, procs, model=model, optimizer=optimizer, num_samples=num_samples)
        self._flops_per_token = flops_per_token
        peak = peak_flops_per_s(procs.device) if settings.precision == "bf16" else None
        self._all_peak_flops_per_s = peak and peak * procs.world_size

    def _record(self, loss: float | None) -> Record:
        record = super()._record(loss)
        tokens_per_s = record.get("tokens_per_s")
        if tokens_per_s and self._all_peak_flops_per_s:
            record["mfu"] = round(tokens_per_s * self._flops_per_token / self._all_peak_flops_per_s, 4)
        return record


def flops_per_token(model: Transformer) -> int:
    shapes = [full_shape(parameter) for parameter in model.parameters()]
    matrices: int = sum(shape.numel() for shape in shapes if len(shape) == 2)
    shape = model.shape
    return 6 * (matrices - shape.vocab * shape.hidden) + 12 * shape.layers * shape.hidden * shape.sequence


def peak_flops_per_s(device: torch.device) -> float | None:
    """A device's dense bf16 peak; None if it is not known."""
    return peak_of(torch.cuda.get_device_name(device)) if device.type == "cuda" else None


def peak_of(device_name: str) -> float | None:
    """By the driver's name for it: `NVIDIA A100-SXM4-80GB`, `NVIDIA H100 PCIe`."""
    words = set(re.split("[ -]", device_name))
    if words & _OTHER_VARIANTS:
        return None
    return next((peak for name, peak in _PEAK_BF16.items() if name in words), None)
