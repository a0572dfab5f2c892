"""The transformer of training.ddp, with its weights, gradients and optimizer sharded over the processes by FSDP2.

Data: the bytes of Python's own language reference; with --data FILE, tokens from training.prepare_tokens.

    python -m training.launch --nproc-per-node 2 training.fsdp --sharding fsdp --steps 500 --checkpoint-path runs/fsdp

The defaults are those of training.ddp, with the same losses, FLOPs and formula for the time they take.
Pulumi.fsdp.yaml, 2.9e19 FLOPs on 2x8 A100 of 312 TFLOP/s, takes four hours and some 175 dollars if MFU reaches 0.4.
Weights, gradients and AdamW's moments are 16 bytes per parameter, divided by the shards; in return each layer's weights
are gathered for every forward pass and again for every backward pass.
"""

import os
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from training.core.adamw import adamw, set_learning_rate
from training.core.capabilities import require_capabilities
from training.core.exits import ConfigurationError
from training.core.flops import TransformerRun, flops_per_token
from training.core.process import Processes, processes
from training.core.program import start
from training.core.tokens import Sequences, corpus
from training.core.transformer import Transformer, compile_blocks, initialise, next_token_loss, num_parameters
from training.core.transformer_settings import TransformerSettings


@dataclass(frozen=True, kw_only=True)
class Settings(TransformerSettings):
    """Flags of this program."""

    sharding: Literal["none", "fsdp", "hybrid"] = "none"
    """none: every process holds the whole model, as in a stack file that does not say otherwise; fsdp: sharded over
    all processes; hybrid: sharded within each node and repeated on every node, for slow networks between them."""


def main(settings: Settings) -> None:
    with processes() as procs:
        train(settings, procs)


def train(settings: Settings, procs: Processes) -> None:
    require_capabilities(settings, procs.device)
    sequences = Sequences(corpus(settings.data, procs), length=settings.sequence, vocab=settings.vocab)

    # On the meta device a tensor has a shape and no memory, so that the whole model never has to fit on one device.
    with torch.device("meta"):
        model = Transformer(settings.shape, recompute=settings.activation_checkpointing)
    if settings.compile:
        compile_blocks(model)
    mesh = mesh_of(settings.sharding, procs)
    shard(model, mesh, settings)
    model.to_empty(device=procs.device)
    initialise(model, seed=settings.seed)
    optimizer = adamw(model, settings)
    num_shards = mesh.shape[-1]
    procs.say(f"{num_parameters(model):,} parameters; copies × shards: {mesh.size() // num_shards}x{num_shards}")

    run = TransformerRun(
        settings,
        procs,
        model=model,
        optimizer=optimizer,
        num_samples=len(sequences),
        flops_per_token=flops_per_token(model),
    )
    for step in run.steps():
        step_loss = torch.zeros((), device=procs.device)
        for micro in run.micro_batches():
            inputs, targets = sequences.batch(micro.samples, procs.device)
            # Gradients travel once a step; until then each process keeps its own, unsharded.
            model.set_requires_gradient_sync(micro.is_last)
            loss = next_token_loss(model(inputs), targets) * micro.weight
            loss.backward()
            step_loss += loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), settings.clip_grad)
        set_learning_rate(optimizer, step, settings)
        optimizer.step()
        optimizer.zero_grad()
        run.log(step_loss, tokens=settings.global_batch * settings.sequence)
    run.finish()


def shard(model: Transformer, mesh: DeviceMesh, settings: Settings) -> None:
    """Each block gathers its weights when its turn comes; the root has what is left: embedding, norm and output."""
    precision = MixedPrecisionPolicy(
        param_dtype=torch.bfloat16 if settings.precision == "bf16" else torch.float32,
        reduce_dtype=torch.float32,
        # Activations have the weights' type already, and the angles of the positions must keep theirs.
        cast_forward_inputs=False,
    )
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=precision)
    fully_shard(model, mesh=mesh, mp_policy=precision)


def mesh_of(sharding: str, procs: Processes) -> DeviceMesh:
    """The processes that share one copy of the model as a row; with several copies, a grid of copies × shards."""
    if sharding == "fsdp":
        return init_device_mesh(procs.device.type, (procs.world_size,))
    num_shards = processes_per_node(procs) if sharding == "hybrid" else 1
    grid = (procs.world_size // num_shards, num_shards)
    return init_device_mesh(procs.device.type, grid, mesh_dim_names=("copy", "shard"))


def processes_per_node(procs: Processes) -> int:
    told = procs.from_all(os.environ.get("LOCAL_WORLD_SIZE"))
    if told[0] is None or len(set(told)) > 1:
        raise ConfigurationError(
            "--sharding hybrid: each process needs LOCAL_WORLD_SIZE, the same on every node; training.launch sets it, "
            f"and the ranks have {told}"
        )
    return int(told[0])


if __name__ == "__main__":
    start(main, Settings)
