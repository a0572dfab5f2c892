"""DeepSpeed under the training loop: its library, and its checkpoints in the place of torch's."""

import logging
import os
import re
from pathlib import Path
from typing import Any

import torch

from training.core.checkpoint import Checkpoints
from training.core.exits import ConfigurationError
from training.core.flops import TransformerRun
from training.core.manifest import FileRecord, Manifest
from training.core.state import random_state
from training.core.transformer import full_shape

# In the names of DeepSpeed's files; those without it are rank 0's.
_RANK = re.compile(r"_pp_rank_(\d+)_")


def deepspeed_for(device: torch.device) -> Any:
    """The library, told what it would otherwise look for at length."""
    os.environ["DS_ACCELERATOR"] = device.type  # read when it is imported
    import deepspeed
    import deepspeed.ops

    # Its kernels are compiled where they are used, and on a CPU it would begin with one that only inference calls.
    deepspeed.ops.__compatible_ops__ = {}
    logging.getLogger("DeepSpeed").setLevel(logging.WARNING)
    return deepspeed


class EngineCheckpoints(Checkpoints):
    """What `save_checkpoint` writes, below a folder named for the sharding; its scripts make plain weights of that."""

    def load(self, step: int, state: dict[str, Any]) -> None:
        path, engine = self.path(step), state["engine"]
        tag = _tag(engine)
        if not (path / tag).is_dir():
            raise ConfigurationError(
                f"checkpoint {path} has no {tag}: it is of another program or --sharding; "
                "restore that, start over with --no-resume, or name another --checkpoint-path"
            )
        written_by = Manifest.read(path).world_size
        if written_by != self._procs.world_size:
            raise ConfigurationError(
                f"checkpoint {path} is of {written_by} processes, and these are {self._procs.world_size}: "
                "DeepSpeed goes on with as many only; start as many, or start over with --no-resume"
            )
        engine.load_checkpoint(str(path), tag=tag)
        state["random"] = torch.load(path / self._random_file, weights_only=False)

    def _write(self, state: dict[str, Any], temporary: Path) -> None:
        engine = state["engine"]
        try:
            engine.save_checkpoint(str(temporary), tag=_tag(engine), save_latest=False)
            torch.save(state["random"], temporary / self._random_file)
        except RuntimeError as error:  # torch's, for a file that cannot be written
            raise OSError(str(error)) from None
        for path in self._own_paths(temporary):
            with path.open("rb") as file:
                os.fsync(file.fileno())

    def _own_files(self, temporary: Path) -> dict[str, FileRecord]:
        return {path.relative_to(temporary).as_posix(): FileRecord.of(path) for path in self._own_paths(temporary)}

    def _own_paths(self, folder: Path) -> list[Path]:
        return [path for path in folder.rglob("*") if path.is_file() and _writer_of(path) == self._procs.rank]

    @property
    def _random_file(self) -> str:
        return f"random_pp_rank_{self._procs.rank}_state.pt"


class EngineRun(TransformerRun):
    """A run whose model is DeepSpeed's engine."""

    checkpoints = EngineCheckpoints

    def _load(self, manifest: Manifest) -> None:
        assert self._shards
        self._compare(manifest, self._parameters())
        state = {"engine": self._model}
        self._shards.load(manifest.step, state)
        self._random = state["random"]

    def _save(self) -> None:
        if self._shards:
            state = {"engine": self._model, "random": random_state(self._procs.device)}
            self._shards.save(state, step=self.step, samples=self.samples, parameters=self._parameters())

    def _parameters(self) -> dict[str, list[int]]:
        named = self._model.module.named_parameters()
        return {name: list(full_shape(parameter)) for name, parameter in named}


def _tag(engine: Any) -> str:
    return f"zero{engine.zero_optimization_stage()}"


def _writer_of(path: Path) -> int:
    found = _RANK.search(path.name)
    return int(found[1]) if found else 0
