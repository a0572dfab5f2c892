"""How much of a device's memory a transformer of the stack file's shape takes. An estimate, for a verdict at preview.

Per device, in bytes:

    state        16 × parameters / (tensor × pipeline), or what sharding leaves of it
    gathered      4 × parameters / layers, of sharded weights: two layers at a time in bf16 (used, and prefetched)
    activations  34 × tokens × hidden × layers / (tensor × pipeline)
    logits        8 × tokens × vocab / tensor
    overhead      2 GiB: CUDA context, NCCL's buffers, the allocator's slack

16 bytes of state are an fp32 weight, its gradient and Adam's two moments. Shards divide them all, but for DeepSpeed's
`zero1`, which leaves weight and gradient whole on every device, and `zero2`, which leaves the weight. 34 bytes per
token, layer and hidden unit is Korthikanti et al. 2022, equation 1, without its attention term, which fused attention
never stores; it holds for half precision, and fp32 takes twice as much. `tokens` are those of one forward pass: micro
batch × sequence / context.
"""

from dataclasses import dataclass
from typing import Literal

from workloads.config import ModelShape
from workloads.resolve import Run

GIB = 2**30
_STATE_BYTES = 16
_WHOLE_BYTES = {"none": 16, "zero1": 8, "zero2": 4, "zero3": 0, "fsdp": 0, "hybrid": 0}
_ACTIVATION_BYTES = 34
_LOGIT_BYTES = 8  # fp32 logits and their gradient
_GATHERED_BYTES = 4
_OVERHEAD_GIB = 2.0
_TIGHT = 0.85  # above this share, fragmentation and a longer batch decide

Verdict = Literal["fits", "tight", "exceeds", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Memory:
    per_device_gib: float | None
    device_gib: float | None
    verdict: Verdict


def memory_of(run: Run) -> Memory:
    """The estimate; unknown without accelerators of a known type, a model's shape and a micro batch."""
    device = run.shape.accelerator
    device_gib = device.memory_gib / device.cores if device and run.resources.num_accelerators else None
    used_gib = _used_gib(run)
    if device_gib is None or used_gib is None:
        return Memory(per_device_gib=used_gib, device_gib=device_gib, verdict="unknown")
    verdict: Verdict = "fits" if used_gib <= device_gib * _TIGHT else "tight" if used_gib <= device_gib else "exceeds"
    return Memory(per_device_gib=used_gib, device_gib=device_gib, verdict=verdict)


def parameters_of(model: ModelShape) -> int | None:
    """The given count, else that of a Llama-style transformer: SwiGLU of 8/3 × hidden, untied embeddings."""
    if model.parameters is not None:
        return model.parameters
    if model.layers is None or model.hidden is None or model.heads is None or model.vocab is None:
        return None
    kv_share = (model.kv_heads or model.heads) / model.heads
    attention = model.hidden**2 * (2 + 2 * kv_share)
    feed_forward = 3 * model.hidden * (model.hidden * 8 // 3)
    return round(model.layers * (attention + feed_forward) + 2 * model.vocab * model.hidden)


def state_bytes(sharding: str, *, shards: int) -> float:
    """Of one parameter on one device, where so many divide what is sharded."""
    whole = _WHOLE_BYTES[sharding]
    return whole + (_STATE_BYTES - whole) / shards


def _used_gib(run: Run) -> float | None:
    model, batch, degrees = run.experiment.model, run.experiment.batch, run.experiment.parallelism
    parameters = parameters_of(model) if model else None
    if model is None or batch is None or parameters is None or run.data_parallel == 0:
        return None
    if model.layers is None or model.hidden is None or model.sequence is None:
        return None
    micro = batch.micro or max(1, batch.global_ // run.data_parallel)
    shards = run.processes_per_node if degrees.sharding == "hybrid" else run.data_parallel
    gathers = shards > 1 and _WHOLE_BYTES[degrees.sharding] == 0
    split = degrees.tensor * degrees.pipeline
    precision = 2 if run.experiment.precision in (None, "fp32") else 1
    tokens = micro * model.sequence / degrees.context
    total = (
        state_bytes(degrees.sharding, shards=shards) * parameters / split
        + (_GATHERED_BYTES * parameters / model.layers if gathers else 0)
        + _ACTIVATION_BYTES * precision * tokens * model.hidden * model.layers / split
        + _LOGIT_BYTES * tokens * (model.vocab or 0) / degrees.tensor
    )
    return round(total / GIB + _OVERHEAD_GIB, 1)
