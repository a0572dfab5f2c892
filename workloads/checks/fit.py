"""TY1xx: whether the pods fit the nodes of their group, and use what they pay for."""

import math
from collections.abc import Iterator

from infra.config.stackfile import KeyPath
from infra.instances import INSTANCE_TYPES
from infra.nodes import nodes_of
from workloads.checks.registry import Problem, rule
from workloads.resolve import Run


def _more_than_a_node_has(run: Run, key: str, unit: str, asked: float, offered: float) -> Iterator[Problem]:
    if asked > offered:
        yield Problem(
            ("resources", key),
            f"each pod asks for {asked:g} {unit}, and a node of `{run.nodes.name}` ({run.shape.name}) has {offered:g}",
            f"ask for {offered:g} at most, or use another node group" if offered else _groups_with(run, key),
        )


def _groups_with(run: Run, resource: str) -> str:
    names = [
        nodes.name
        for nodes in nodes_of(run.platform).values()
        if any(getattr(shape, resource, 0) for shape in nodes.shapes)
    ]
    return f"drop the key, or use a node group that has some: {', '.join(names) or 'the platform has none'}"


@rule("TY101")
def gpus_exist(run: Run) -> Iterator[Problem]:
    """A pod asks for more GPUs than one node has.

    No node would ever be found for it: the pod stays Pending while everything else looks healthy.
    """
    yield from _more_than_a_node_has(run, "gpu", "GPUs", run.resources.gpu, run.shape.gpu)


@rule("TY102")
def efa_interfaces_exist(run: Run) -> Iterator[Problem]:
    """A pod asks for more EFA interfaces than one node has, or for some where the group has no EFA.

    The count is fixed per type (4 on p4d, 32 on p5, 16 on p5en), and a group has none unless it says `efa: true`.
    """
    yield from _more_than_a_node_has(run, "efa", "EFA interfaces", run.resources.efa, run.shape.efa)


@rule("TY103")
def neuron_devices_exist(run: Run) -> Iterator[Problem]:
    """A pod asks for more Neuron devices than one node has."""
    yield from _more_than_a_node_has(run, "neuron", "Neuron devices", run.resources.neuron, run.shape.neuron)


@rule("TY104")
def cpu_fits(run: Run) -> Iterator[Problem]:
    """A pod asks for more CPU than a node has left for pods.

    Of a node's cores, kubelet keeps a share and the DaemonSets ask for theirs: 96 vCPU are some 95 for pods.
    """
    yield from _more_than_a_node_has(run, "cpu", "CPU", run.resources.cpu, run.shape.cpu)


@rule("TY105")
def memory_fits(run: Run) -> Iterator[Problem]:
    """A pod asks for more memory than a node has left for pods.

    A p4d.24xlarge is sold with 1152 GiB, and pods can have some 1056 of them.
    """
    yield from _more_than_a_node_has(run, "memory_gib", "GiB of memory", run.resources.memory_gib, run.shape.memory_gib)


@rule("TY106")
def gang_fits_the_group(run: Run) -> Iterator[Problem]:
    """The gang needs more nodes than its group may ever have.

    A gang starts whole or not at all, so it would wait for ever, and an autoscaler would add nodes up to the group's
    maximum for nothing.
    """
    limit = run.nodes.max_nodes
    pods_per_node = (
        run.pods_per_node or 1
    )  # a pod that fits no node is another rule's; it needs one of its own at least
    num_nodes = math.ceil(run.experiment.nodes / pods_per_node)
    if limit is not None and num_nodes > limit:
        most = limit * pods_per_node
        yield Problem(
            ("nodes",),
            f"{run.experiment.nodes} pods need {num_nodes} nodes ({pods_per_node} to a node), and "
            f"`{run.nodes.name}` has {limit} at most",
            f"lower `nodes` to {most}, or raise the maximum of `{run.nodes.name}` to {num_nodes}"
            if most
            else f"raise the maximum of `{run.nodes.name}` to {num_nodes}",
        )


@rule("TY107")
def pool_limits_hold_the_gang(run: Run) -> Iterator[Problem]:
    """The gang asks for more CPU or memory than its node pool may ever have."""
    limits = [
        ("cpu", "CPU", run.nodes.max_cpu, run.resources.cpu),
        ("memory_gib", "GiB", run.nodes.max_memory_gib, run.resources.memory_gib),
    ]
    for key, unit, limit, per_pod in limits:
        total = per_pod * run.experiment.nodes
        if limit is not None and total > limit:
            yield Problem(
                ("nodes",),
                f"{run.experiment.nodes} pods ask for {total:g} {unit}, and `{run.nodes.name}` stops at {limit:g}",
                f"lower `nodes` to {int(limit // per_pod)}, or raise `limits.{key}` of the pool",
            )


@rule("TY108")
def shared_memory_fits_the_pod(run: Run) -> Iterator[Problem]:
    """/dev/shm is as large as the pod's whole memory.

    It is memory of the pod: a full /dev/shm leaves nothing to the processes, and the kernel kills them.
    """
    if run.resources.shm_gib >= run.resources.memory_gib:
        yield Problem(
            ("resources", "shm_gib"),
            f"/dev/shm of {run.resources.shm_gib:g} GiB in a pod with {run.resources.memory_gib:g} GiB of memory",
            f"lower it below {run.resources.memory_gib:g}, or drop it: the default is an eighth of the memory",
        )


@rule("TY109")
def hugepages_come_from_running_nodes(run: Run) -> Iterator[Problem]:
    """Huge pages asked of a Karpenter pool.

    Karpenter does not know huge pages: a pod that asks for them never makes it start a node (aws/karpenter#3315).
    """
    if run.resources.hugepages_2mi_mib and run.nodes.is_pool:
        yield Problem(
            ("resources", "hugepages_2mi_mib"),
            f"`{run.nodes.name}` is a Karpenter pool, which never starts a node for a pod with huge pages",
            "drop the key, or use a managed node group",
        )


@rule("TY110")
def fabric_exists(run: Run) -> Iterator[Problem]:
    """`fabric: efa` where the pods get no EFA interface.

    The run would start, fall back to TCP without a word, and be several times slower.
    """
    if run.experiment.fabric == "efa" and not run.uses_efa:
        takes = INSTANCE_TYPES[run.shape.name].num_efa if run.shape.name in INSTANCE_TYPES else 0
        if run.experiment.nodes == 1:
            reason, fix = "a single pod has nobody to talk to over it", "drop `fabric`, or raise `nodes`"
        elif takes and not run.shape.efa:
            reason, fix = f"`{run.nodes.name}` is declared without it", f"set `efa: true` on `{run.nodes.name}`"
        elif run.shape.efa:
            reason, fix = "`resources.efa` is 0", "drop `resources.efa`: all interfaces are the default"
        else:
            reason = f"{run.shape.name} has none"
            fix = _groups_with(run, "efa").replace("drop the key", "drop `fabric`")
        yield Problem(("fabric",), f"`fabric: efa`, but {reason}", fix)


@rule("TY111")
def precision_exists_on_the_device(run: Run) -> Iterator[Problem]:
    """A precision that the accelerator does not compute in.

    T4 and V100 have no bf16 (PyTorch emulates it, slowly); 8-bit floats need Ada, Hopper, Blackwell or Trainium2.
    """
    device, precision = run.shape.accelerator, run.experiment.precision
    if device is None or not run.resources.num_accelerators:
        return
    if precision == "bf16" and device.bf16_tflops is None:
        message = f"{device.name} devices have no bf16 arithmetic"
        yield Problem(("precision",), message, "use fp16 with loss scaling, or fp32")
    if precision == "fp8" and not device.fp8:
        fix = "use bf16" if device.bf16_tflops else "use fp16"
        yield Problem(("precision",), f"{device.name} devices have no 8-bit floating point", fix)


@rule("TY112", "warning")
def accelerators_are_used(run: Run) -> Iterator[Problem]:
    """Accelerators of the node that no pod can use, though they are paid for."""
    shape, resources = run.shape, run.resources
    unused = shape.num_accelerators - resources.num_accelerators * run.pods_per_node
    if shape.num_accelerators and resources.num_accelerators and 0 < unused < shape.num_accelerators:
        key: KeyPath = ("resources", "gpu" if shape.gpu else "neuron")
        yield Problem(
            key,
            f"{run.pods_per_node} pods with {resources.num_accelerators} devices each leave {unused} of "
            f"{shape.num_accelerators} idle on every {shape.name}",
            "ask for a count that divides the node's, and for no more CPU and memory than its share",
        )
    elif shape.num_accelerators and not resources.num_accelerators:
        yield Problem(
            ("node_group",),
            f"the pods use no accelerator, on nodes with {shape.num_accelerators} each",
            "use a CPU node group, or drop `resources.gpu`/`resources.neuron`",
        )


@rule("TY113", "warning")
def efa_is_whole(run: Run) -> Iterator[Problem]:
    """A pod has all accelerators of its node but not all of its EFA interfaces.

    Each interface carries a share of the node's bandwidth; the rest lies idle.
    """
    whole_node = run.resources.num_accelerators == run.shape.num_accelerators > 0
    if whole_node and 0 < run.resources.efa < run.shape.efa:
        yield Problem(
            ("resources", "efa"),
            f"{run.resources.efa} of the node's {run.shape.efa} EFA interfaces",
            "drop the key: all of them are the default",
        )
