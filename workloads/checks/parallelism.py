"""TY3xx: the arithmetic of processes, degrees and batches. All of it fails at start-up otherwise, on paid nodes."""

from collections.abc import Iterator

from workloads.checks.registry import Problem, rule
from workloads.resolve import Run


@rule("TY301")
def degrees_divide_the_world(run: Run) -> Iterator[Problem]:
    """tensor × pipeline × context does not divide the number of processes."""
    degrees = run.experiment.parallelism
    if run.world_size % degrees.model_processes:
        yield Problem(
            ("parallelism",),
            f"one copy of the model takes {degrees.tensor}×{degrees.pipeline}×{degrees.context} = "
            f"{degrees.model_processes} processes (tensor × pipeline × context), which does not divide the "
            f"{run.world_size} of {run.experiment.nodes}x{run.processes_per_node}",
            f"use degrees whose product is one of {_divisors(run.world_size)}",
        )


@rule("TY302")
def batch_divides(run: Run) -> Iterator[Problem]:
    """The global batch is no multiple of micro batch × data-parallel copies.

    Every optimizer step takes a whole number of forward passes on every copy: global % (micro × copies) must be 0, for
    an elastic run with every number of nodes that it may have.
    """
    batch, elastic = run.experiment.batch, run.experiment.elastic
    model_processes = run.experiment.parallelism.model_processes
    sizes = range(elastic.min, elastic.max + 1) if elastic else [run.experiment.nodes]
    for nodes in sizes:
        copies, rest = divmod(nodes * run.processes_per_node, model_processes)
        each = ((batch and batch.micro) or 1) * copies
        if batch is None or rest or batch.global_ % each == 0:
            continue
        below, above = batch.global_ // each * each, (batch.global_ // each + 1) * each
        micro = f"micro {batch.micro} × " if batch.micro else ""
        on = f" on {nodes} of {elastic.min} to {elastic.max} nodes" if elastic else ""
        yield Problem(
            ("batch", "global"),
            f"{batch.global_} samples do not divide into {micro}{copies} data-parallel copies{on}",
            f"nearest that do: {f'{below} or ' if below else ''}{above}",
        )


@rule("TY303")
def tensor_parallel_stays_within_a_node(run: Run) -> Iterator[Problem]:
    """A tensor-parallel group reaches across nodes.

    Its members exchange activations in every layer: over NVLink that is cheap, over the network it is most of the step.
    """
    tensor = run.experiment.parallelism.tensor
    if run.processes_per_node % tensor:
        yield Problem(
            ("parallelism", "tensor"),
            f"groups of {tensor} do not divide the {run.processes_per_node} processes of a node",
            f"use one of {_divisors(run.processes_per_node)}",
        )


@rule("TY304")
def processes_match_accelerators(run: Run) -> Iterator[Problem]:
    """More processes than accelerators in a pod, or accelerators that no process drives."""
    cores = run.shape.accelerator.cores if run.shape.accelerator and run.resources.neuron else 1
    devices = run.resources.num_accelerators * cores
    what = "NeuronCores" if run.resources.neuron else "GPUs"
    if devices and run.processes_per_node != devices:
        difference = "idle" if run.processes_per_node < devices else "shared, which NCCL refuses"
        yield Problem(
            ("processes_per_node",),
            f"{run.processes_per_node} processes and {devices} {what} in each pod: some are {difference}",
            "drop `processes_per_node`: one process for each is the default",
        )


@rule("TY305")
def model_divides_into_its_shards(run: Run) -> Iterator[Problem]:
    """A dimension of the model does not divide by the degree that splits it, or by the number of heads."""
    model, degrees = run.experiment.model, run.experiment.parallelism
    if model is None:
        return
    splits = [
        ("heads", model.heads, degrees.tensor, "parallelism.tensor"),
        ("kv_heads", model.kv_heads, degrees.tensor, "parallelism.tensor"),
        ("vocab", model.vocab, degrees.tensor, "parallelism.tensor"),
        ("hidden", model.hidden, model.heads or 1, "model.heads"),
        ("heads", model.heads, model.kv_heads or 1, "model.kv_heads"),
        ("layers", model.layers, degrees.pipeline, "parallelism.pipeline"),
        # Ring attention deals each rank one early and one late chunk, hence twice the degree.
        ("sequence", model.sequence, degrees.context * 2 if degrees.context > 1 else 1, "2 × parallelism.context"),
    ]
    for key, size, parts, name in splits:
        if size is not None and size % parts:
            above = (size // parts + 1) * parts
            yield Problem(
                ("model", key),
                f"{key} {size} does not divide by {parts} ({name})",
                f"nearest that does: {f'{above - parts} or ' if above > parts else ''}{above}",
            )


@rule("TY306", "warning")
def sharding_has_somebody_to_share_with(run: Run) -> Iterator[Problem]:
    """Sharding over one process, or hybrid sharding on one node: nothing is sharded, only the cost is paid."""
    sharding = run.experiment.parallelism.sharding
    if sharding not in ("none", "hybrid") and run.data_parallel == 1:
        message = f"`{sharding}` over one data-parallel copy shards nothing"
        fix = "use more processes, or `sharding: none`"
        yield Problem(("parallelism", "sharding"), message, fix)
    if sharding == "hybrid" and run.experiment.nodes == 1:
        message, fix = "`hybrid` on one node is `fsdp` with another name", "use `sharding: fsdp`"
        yield Problem(("parallelism", "sharding"), message, fix)


def _divisors(number: int) -> str:
    return ", ".join(str(divisor) for divisor in range(1, number + 1) if number % divisor == 0)
