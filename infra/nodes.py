"""What the nodes of a group or pool offer to pods, whichever way the platform declares them.

Everything that fits pods to nodes, prices them or places them reads these two classes and nothing else.
"""

from dataclasses import dataclass

from infra.config.nodes import ExistingNodeGroup, NodeGroup, NodePool, Taint
from infra.config.platform import EksPlatform, PlatformConfig
from infra.instances import INSTANCE_TYPES, Accelerator, InstanceType

# Requests of the DaemonSets that a platform runs on every node (VPC CNI, kube-proxy, CSI drivers, device plugins, DCGM
# exporter, node monitoring): the sum of their charts' defaults, rounded up. Our estimate.
DAEMONSET_CPU = 0.5
DAEMONSET_MEMORY_GIB = 1.0

POOL_LABEL = "karpenter.sh/nodepool"
GROUP_LABEL = "eks.amazonaws.com/nodegroup"


@dataclass(frozen=True, kw_only=True)
class NodeShape:
    """What one node has for pods."""

    name: str
    """The instance type, or the group's name where the nodes are none."""
    cpu: float
    memory_gib: float
    gpu: int = 0
    efa: int = 0
    neuron: int = 0
    accelerator: Accelerator | None = None
    usd_per_hour: float | None = None

    @property
    def num_accelerators(self) -> int:
        return self.gpu + self.neuron


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """A node group, or a Karpenter node pool."""

    name: str
    is_pool: bool
    shapes: tuple[NodeShape, ...]
    """The types a node can have, cheapest first: Karpenter starts the cheapest that fits."""
    max_nodes: int | None
    """None: only Karpenter's other limits count."""
    labels: dict[str, str]
    taints: tuple[Taint, ...] = ()
    spot: bool = False
    max_cpu: float | None = None
    max_memory_gib: float | None = None


def nodes_of(platform: PlatformConfig) -> dict[str, Nodes]:
    """Every node group and pool of a platform, by name."""
    if isinstance(platform, EksPlatform):
        found = [_group(group) for group in platform.node_groups] + [_pool(pool) for pool in platform.node_pools]
    else:
        found = [_existing(group) for group in platform.node_groups]
    return {nodes.name: nodes for nodes in found}


def accelerator_taints(row: InstanceType) -> tuple[Taint, ...]:
    """Keeps pods that need no accelerator away; both device plugins tolerate theirs."""
    if row.accelerator is None:
        return ()
    key = "nvidia.com/gpu" if row.accelerator.kind == "gpu" else "aws.amazon.com/neuron"
    return (Taint(key=key),)


def shape_of(row: InstanceType, *, efa: bool) -> NodeShape:
    """One instance type as pods see it."""
    is_gpu = row.accelerator is not None and row.accelerator.kind == "gpu"
    return NodeShape(
        name=row.name,
        cpu=round(row.vcpu - _kubelet_reserved_cpu(row.vcpu) - DAEMONSET_CPU, 2),
        memory_gib=round(row.allocatable_memory_gib - DAEMONSET_MEMORY_GIB, 1),
        gpu=row.num_accelerators if is_gpu else 0,
        neuron=0 if is_gpu else row.num_accelerators,
        efa=row.num_efa if efa else 0,
        accelerator=row.accelerator,
        usd_per_hour=row.usd_per_hour,
    )


def _kubelet_reserved_cpu(vcpu: int) -> float:
    """EKS's kube-reserved: 6 % of the first core, 1 % of the second, 0.5 % of two more, 0.25 % of the rest."""
    shares = [0.06, 0.01, 0.005, 0.005]
    return sum(shares[:vcpu]) + 0.0025 * max(0, vcpu - len(shares))


def _group(group: NodeGroup) -> Nodes:
    row = INSTANCE_TYPES[group.instance_type]
    return Nodes(
        name=group.name,
        is_pool=False,
        shapes=(shape_of(row, efa=group.efa),),
        max_nodes=group.max,
        labels={GROUP_LABEL: group.name},
        taints=(*accelerator_taints(row), *group.taints),
        spot=group.capacity == "spot",
    )


def _pool(pool: NodePool) -> Nodes:
    rows = [INSTANCE_TYPES[name] for name in pool.instance_types]
    rows.sort(key=lambda row: (row.usd_per_hour or float("inf"), row.name))
    return Nodes(
        name=pool.name,
        is_pool=True,
        shapes=tuple(shape_of(row, efa=row.num_efa > 0) for row in rows),
        max_nodes=pool.limits.nodes,
        labels={POOL_LABEL: pool.name},
        taints=accelerator_taints(rows[0]),
        spot=pool.capacity == "spot",
        max_cpu=pool.limits.cpu,
        max_memory_gib=pool.limits.memory_gib,
    )


def _existing(group: ExistingNodeGroup) -> Nodes:
    if group.instance_type is not None:
        row = INSTANCE_TYPES[group.instance_type]
        shape = shape_of(row, efa=row.num_efa > 0)
    else:
        assert group.allocatable is not None  # the model accepts exactly one of the two
        offered = group.allocatable
        shape = NodeShape(
            name=group.name,
            cpu=offered.cpu,
            memory_gib=offered.memory_gib,
            gpu=offered.gpu,
            efa=offered.efa,
            neuron=offered.neuron,
        )
    return Nodes(
        name=group.name,
        is_pool=False,
        shapes=(shape,),
        max_nodes=group.max,
        labels=group.labels,
        taints=tuple(group.taints),
    )
