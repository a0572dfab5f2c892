"""A Llama-style transformer, trained with DistributedDataParallel: every process holds all of it.

Data: the bytes of Python's own language reference; with --data FILE, tokens from training.prepare_tokens.

    python -m training.launch --nproc-per-node 2 training.ddp --steps 500 --checkpoint-path runs/ddp

The defaults, 0.85 M parameters, bring the training loss from 5.5 to about 1.2 nats per byte in a few minutes on two CPU
cores, for nothing. Larger runs compute

    FLOPs   = (6 × matrix weights + 12 × layers × hidden × sequence) × sequence × global batch × steps
    seconds = FLOPs ÷ (devices × peak FLOP/s of one × MFU)

so that Pulumi.ddp.yaml, 4.0e17 FLOPs on 2x4 A10G of 70 TFLOP/s, takes half an hour and some 6 dollars if MFU reaches
0.4. Weights, gradients and AdamW's moments are 16 bytes per parameter on each device: what does not fit is for
training.fsdp.
"""

from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import nn

from training.core.adamw import adamw, set_learning_rate
from training.core.capabilities import require_capabilities
from training.core.flops import TransformerRun, flops_per_token
from training.core.order import plan_batches
from training.core.process import Processes, processes
from training.core.program import start
from training.core.replicas import replicate
from training.core.tokens import Sequences, corpus
from training.core.transformer import Transformer, compile_blocks, initialise, next_token_loss, num_parameters
from training.core.transformer_settings import TransformerSettings


@dataclass(frozen=True, kw_only=True)
class Settings(TransformerSettings):
    """Flags of this program."""


def main(settings: Settings) -> None:
    with processes() as procs:
        train(settings, procs)


def train(settings: Settings, procs: Processes) -> None:
    require_capabilities(settings, procs.device)
    sequences = Sequences(corpus(settings.data, procs), length=settings.sequence, vocab=settings.vocab)

    batches = plan_batches(
        global_batch=settings.global_batch, micro_batch=settings.micro_batch, world_size=procs.world_size
    )
    # Of the shape that every forward pass has, so that nothing is compiled for another.
    example = torch.zeros(batches.micro_batch, settings.sequence, dtype=torch.long, device=procs.device)

    transformer = Transformer(settings.shape, recompute=settings.activation_checkpointing).to(procs.device)
    initialise(transformer, seed=settings.seed)
    if settings.compile:
        compile_blocks(transformer)
    # Weights stay fp32; matrix products round their inputs to bf16.
    autocast = torch.autocast(procs.device.type, torch.bfloat16, enabled=settings.precision == "bf16")
    with autocast:
        model = replicate(transformer, example)
    optimizer = adamw(model, settings)
    procs.say(f"{num_parameters(transformer):,} parameters; copies: {procs.world_size}")

    run = TransformerRun(
        settings,
        procs,
        model=model,
        optimizer=optimizer,
        num_samples=len(sequences),
        flops_per_token=flops_per_token(transformer),
    )
    for step in run.steps():
        step_loss = torch.zeros((), device=procs.device)
        for micro in run.micro_batches():
            inputs, targets = sequences.batch(micro.samples, procs.device)
            # Gradients travel once a step: with the last micro batch, while its backward pass still computes.
            with nullcontext() if micro.is_last else model.no_sync():
                with autocast:
                    loss = next_token_loss(model(inputs), targets) * micro.weight
                loss.backward()
            step_loss += loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), settings.clip_grad)
        set_learning_rate(optimizer, step, settings)
        optimizer.step()
        optimizer.zero_grad()
        run.log(step_loss, tokens=settings.global_batch * settings.sequence)
    run.finish()


if __name__ == "__main__":
    start(main, Settings)
