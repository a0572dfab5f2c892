"""training.ddp and every ZeRO of training.deepspeed_gpt, one after another in the same processes.

Each variant leaves its metrics in a folder of its own name.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

from tests.training.transformer_variants import SHAPE
from training import ddp, deepspeed_gpt
from training.core.process import processes
from training.core.program import start
from training.core.settings import RunSettings

VARIANTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "ddp": (ddp, {}),
    "none": (deepspeed_gpt, {"sharding": "none"}),
    "none-accumulating": (deepspeed_gpt, {"sharding": "none", "micro_batch": 2}),
    "zero1": (deepspeed_gpt, {"sharding": "zero1"}),
    "zero1-bf16": (deepspeed_gpt, {"sharding": "zero1", "precision": "bf16"}),
    "zero2": (deepspeed_gpt, {"sharding": "zero2"}),
    "zero2-accumulating": (deepspeed_gpt, {"sharding": "zero2", "micro_batch": 2}),
    "zero2-checkpointing": (deepspeed_gpt, {"sharding": "zero2", "activation_checkpointing": True}),
    "zero3": (deepspeed_gpt, {"sharding": "zero3"}),
    "zero3-accumulating": (deepspeed_gpt, {"sharding": "zero3", "micro_batch": 2}),
    "zero3-checkpointing": (deepspeed_gpt, {"sharding": "zero3", "activation_checkpointing": True}),
    "zero3-bf16": (deepspeed_gpt, {"sharding": "zero3", "precision": "bf16"}),
}


@dataclass(frozen=True, kw_only=True)
class Settings(RunSettings):
    """Flags of this program."""

    steps: int = 4
    global_batch: int = 16
    log_every_steps: int = 1


def main(settings: Settings) -> None:
    assert settings.checkpoint_path
    shared = {field.name: getattr(settings, field.name) for field in dataclasses.fields(RunSettings)}
    with processes() as procs:
        for name, (program, own) in VARIANTS.items():
            flags = shared | SHAPE | own | {"checkpoint_path": settings.checkpoint_path / name}
            program.train(program.Settings(**flags), procs)


if __name__ == "__main__":
    start(main, Settings)
