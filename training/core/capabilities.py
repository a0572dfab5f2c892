"""What the transformer's flags need of the machine, asked before anything is built on it."""

import os
import shutil

import torch

from training.core.exits import ConfigurationError
from training.core.transformer_settings import TransformerSettings


def require_capabilities(settings: TransformerSettings, device: torch.device) -> None:
    """Refuse in words what would be slow without a word, or fail inside a compiler after minutes."""
    on_gpu = device.type == "cuda"
    if settings.precision == "bf16" and on_gpu and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise ConfigurationError(
            f"--precision bf16: a {torch.cuda.get_device_name(device)} has no bf16 arithmetic; "
            "take --precision fp32, or an Ampere GPU or newer"
        )
    if settings.compile and not _compilers(on_gpu=on_gpu):
        raise ConfigurationError(
            "--compile: this machine has no C++ compiler; install g++ in its image, or leave --compile out"
        )


def _compilers(*, on_gpu: bool) -> list[str]:
    """Those found among what torch's inductor looks for on a CPU, and Triton on a GPU."""
    wanted = [os.environ.get("CC"), "gcc", "clang"] if on_gpu else [os.environ.get("CXX", "g++")]
    return [name for name in wanted if name and shutil.which(name)]
