"""The transformer of training.ddp, with its optimizer, gradients and weights sharded by DeepSpeed's ZeRO.

Data: the bytes of Python's own language reference; with --data FILE, tokens from training.prepare_tokens.

    python -m training.launch --nproc-per-node 2 training.deepspeed_gpt --sharding zero2 --steps 500

The defaults are those of training.ddp, with the same losses, FLOPs and formula for the time they take.
Pulumi.deepspeed.yaml, 2.9e19 FLOPs on 2x8 A100 of 312 TFLOP/s, takes four hours and some 175 dollars if MFU reaches
0.4. Of the 16 bytes per parameter for weights, gradients and AdamW's moments, `zero1` divides 8 by the processes,
`zero2` 12, and `zero3` all. The `deepspeed` image has the library (Rajbhandari et al. 2020, arXiv:1910.02054).
"""

from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any, Literal

import torch

from training.core.adamw import adamw, set_learning_rate
from training.core.capabilities import require_capabilities
from training.core.exits import ConfigurationError
from training.core.flops import flops_per_token
from training.core.modules import require
from training.core.order import BatchPlan, plan_batches
from training.core.process import Processes, processes
from training.core.program import start
from training.core.tokens import Sequences, corpus
from training.core.transformer import Transformer, compile_blocks, initialise, next_token_loss, num_parameters
from training.core.transformer_settings import TransformerSettings
from training.core.zero import EngineRun, deepspeed_for

_STAGES = {"none": 0, "zero1": 1, "zero2": 2, "zero3": 3}
# Numbers that are reduced at a time. DeepSpeed's own, half a billion, takes 2 GB in fp32.
_BUCKET = 2**26


@dataclass(frozen=True, kw_only=True)
class Settings(TransformerSettings):
    """Flags of this program."""

    sharding: Literal["none", "zero1", "zero2", "zero3"] = "none"
    """What the processes divide among them. zero1: the optimizer; zero2: gradients as well; zero3: weights as well."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sharding == "none" and self.precision == "bf16":
            raise ConfigurationError(
                "--precision bf16: without ZeRO, DeepSpeed keeps no weights of fp32 beside those of bf16; "
                "take --sharding zero1 or above, or --precision fp32"
            )
        if self.sharding == "zero3" and self.compile:
            raise ConfigurationError(
                "--compile: a layer cannot be compiled where DeepSpeed gathers its weights from inside it; "
                "take --sharding zero2 or below"
            )


def main(settings: Settings) -> None:
    require("deepspeed", image="deepspeed")
    with processes() as procs:
        train(settings, procs)


def train(settings: Settings, procs: Processes) -> None:
    require_capabilities(settings, procs.device)
    sequences = Sequences(corpus(settings.data, procs), length=settings.sequence, vocab=settings.vocab)
    batches = plan_batches(
        global_batch=settings.global_batch, micro_batch=settings.micro_batch, world_size=procs.world_size
    )

    deepspeed = deepspeed_for(procs.device)
    config = engine_config(settings, batches)
    is_sharded = settings.sharding == "zero3"
    # Each weight is divided as soon as it is there, so that the whole model never has to fit on one device.
    with deepspeed.zero.Init(enabled=is_sharded, config_dict_or_path=config):
        transformer = Transformer(settings.shape, recompute=settings.activation_checkpointing).to(procs.device)
    initialise(
        transformer,
        seed=settings.seed,
        whole=lambda weight: deepspeed.zero.GatheredParameters(weight, modifier_rank=0, enabled=is_sharded),
    )
    if settings.compile:
        compile_blocks(transformer)
    with redirect_stdout(None):  # a dozen lines about the memory in use
        engine, optimizer, _, _ = deepspeed.initialize(
            model=transformer, optimizer=adamw(transformer, settings), config=config
        )
    procs.say(f"{num_parameters(transformer):,} parameters; {settings.sharding} over {procs.world_size} processes")

    run = EngineRun(
        settings,
        procs,
        model=engine,
        optimizer=optimizer,
        num_samples=len(sequences),
        flops_per_token=flops_per_token(transformer),
    )
    for step in run.steps():
        set_learning_rate(optimizer, step, settings)
        step_loss = torch.zeros((), device=procs.device)
        for micro in run.micro_batches():
            inputs, targets = sequences.batch(micro.samples, procs.device)
            loss = next_token_loss(engine(inputs), targets)
            engine.backward(loss)  # it divides by the number of micro batches itself
            engine.step()  # clips and updates after the last of them
            step_loss += loss.detach() * micro.weight
        run.log(step_loss, tokens=settings.global_batch * settings.sequence)
    run.finish()


def engine_config(settings: Settings, batches: BatchPlan) -> dict[str, Any]:
    """DeepSpeed's configuration. In bf16 the optimizer keeps weights of fp32, and gradients are added up in fp32."""
    return {
        "train_micro_batch_size_per_gpu": batches.micro_batch,
        "gradient_accumulation_steps": batches.num_micro_batches,
        "gradient_clipping": settings.clip_grad,
        "bf16": {"enabled": settings.precision == "bf16"},
        "data_types": {"grad_accum_dtype": "fp32"},
        "communication_data_type": "fp32",
        "zero_optimization": {"stage": _STAGES[settings.sharding], "reduce_bucket_size": _BUCKET},
    }


if __name__ == "__main__":
    start(main, Settings)
