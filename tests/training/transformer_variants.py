"""The transformer programs, one after another in the same processes: what the comparing tests start.

Each variant leaves its metrics in a folder of its own name.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

from training import ddp, fsdp
from training.core.process import processes
from training.core.program import start
from training.core.settings import RunSettings

SHAPE = {"layers": 2, "hidden": 32, "heads": 4, "kv_heads": 2, "sequence": 16}
VARIANTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "ddp": (ddp, {}),
    "ddp-accumulating": (ddp, {"micro_batch": 2}),
    "ddp-checkpointing": (ddp, {"activation_checkpointing": True}),
    "ddp-bf16": (ddp, {"precision": "bf16"}),
    "fsdp": (fsdp, {"sharding": "fsdp"}),
    "fsdp-accumulating": (fsdp, {"sharding": "fsdp", "micro_batch": 2}),
    "fsdp-checkpointing": (fsdp, {"sharding": "fsdp", "activation_checkpointing": True}),
    "fsdp-bf16": (fsdp, {"sharding": "fsdp", "precision": "bf16"}),
    "fsdp-none": (fsdp, {"sharding": "none"}),
    "fsdp-hybrid": (fsdp, {"sharding": "hybrid"}),
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
