"""An experiment and its platform, joined: every default filled, every name looked up, nothing left to decide.

Launchers, rules, cost and `run` all read a `Run`, so that they cannot disagree about what the pods will ask for.
"""

import math
from dataclasses import dataclass

from infra.config.platform import PlatformConfig, Team
from infra.nodes import Nodes, NodeShape, nodes_of
from workloads.config import ExperimentConfig

# On CPU a run should fit on a laptop's cluster; the figures are the contract of the stack file.
_CPU_REQUEST = 0.5
_CPU_MEMORY_GIB = 2.0
# Shared memory carries batches from data-loading workers, and NCCL's rings within a node: an eighth of the pod's
# memory, up to the 128 GiB that eight-GPU nodes are commonly given.
_SHM_SHARE = 1 / 8
_SHM_MAX_GIB = 128.0
_ROUNDING = 1e-9  # 3.9 / 1.3 is a little less than 3 in floating point

# Kinds of job with no deadline of their own.
_LIMITED_BY_START = ("volcano-job", "torchx", "train-job")


@dataclass(frozen=True, kw_only=True)
class PodResources:
    """What each pod asks for."""

    cpu: float
    """Requested, never limited: a throttled data loader starves the accelerators."""
    memory_gib: float
    gpu: int
    efa: int
    neuron: int
    shm_gib: float
    hugepages_2mi_mib: int

    @property
    def num_accelerators(self) -> int:
        return self.gpu + self.neuron


@dataclass(frozen=True, kw_only=True)
class Run:
    """One experiment on one platform."""

    stack: str
    experiment: ExperimentConfig
    platform: PlatformConfig
    team: Team
    nodes: Nodes
    shape: NodeShape
    """The node type that the pods are sized for."""
    resources: PodResources
    processes_per_node: int

    @property
    def world_size(self) -> int:
        return self.experiment.nodes * self.processes_per_node

    @property
    def fewest_nodes(self) -> int:
        """How many pods must be there for the run to go on."""
        return self.experiment.elastic.min if self.experiment.elastic else self.experiment.nodes

    @property
    def data_parallel(self) -> int:
        """Copies of the model that see different samples."""
        return self.world_size // self.experiment.parallelism.model_processes

    @property
    def queue(self) -> str:
        return self.experiment.queue or self.team.queue

    @property
    def num_time_limits(self) -> int:
        """How often `max_hours` may pass. Some kinds have no deadline, so that each start of their pods gets one."""
        return self.experiment.restarts + 1 if self.experiment.launcher in _LIMITED_BY_START else 1

    @property
    def most_hours(self) -> float | None:
        """How long the run's nodes may be in use."""
        hours = self.experiment.max_hours
        return None if hours is None else hours * self.num_time_limits

    @property
    def uses_efa(self) -> bool:
        return self.resources.efa > 0

    @property
    def pods_per_node(self) -> int:
        """How many of the pods fit one node; 0 when not even one does."""
        asked_and_offered = [
            (self.resources.cpu, self.shape.cpu),
            (self.resources.memory_gib, self.shape.memory_gib),
            (self.resources.gpu, self.shape.gpu),
            (self.resources.efa, self.shape.efa),
            (self.resources.neuron, self.shape.neuron),
        ]
        return min(math.floor(offered / asked + _ROUNDING) for asked, offered in asked_and_offered if asked)

    @property
    def num_nodes(self) -> int | None:
        """Nodes that the gang fills; None when a pod fits no node."""
        return math.ceil(self.experiment.nodes / self.pods_per_node) if self.pods_per_node else None


def resolve(stack: str, experiment: ExperimentConfig, platform: PlatformConfig) -> Run:
    """The run; every name in the experiment must exist on the platform (`references.py` says so first)."""
    nodes = nodes_of(platform)[experiment.node_group]
    shape = _shape_for(nodes, experiment)
    resources = _resources(shape, experiment)
    return Run(
        stack=stack,
        experiment=experiment,
        platform=platform,
        team=next(team for team in platform.teams if team.name == experiment.team),
        nodes=nodes,
        shape=shape,
        resources=resources,
        processes_per_node=experiment.processes_per_node or _default_processes(shape, resources),
    )


def _shape_for(nodes: Nodes, experiment: ExperimentConfig) -> NodeShape:
    """The cheapest type of the pool that has what is asked for, as Karpenter picks; the largest when none has."""
    asked = experiment.resources

    def has(shape: NodeShape) -> bool:
        pairs = [
            (asked.cpu, shape.cpu),
            (asked.memory_gib, shape.memory_gib),
            (asked.gpu, shape.gpu),
            (asked.efa, shape.efa),
            (asked.neuron, shape.neuron),
        ]
        return all(wanted is None or wanted <= offered for wanted, offered in pairs)

    return next((shape for shape in nodes.shapes if has(shape)), nodes.shapes[-1])


def _resources(shape: NodeShape, experiment: ExperimentConfig) -> PodResources:
    asked = experiment.resources
    gpu = shape.gpu if asked.gpu is None else asked.gpu
    neuron = shape.neuron if asked.neuron is None else asked.neuron
    accelerated = gpu + neuron > 0
    # A pod that takes half of the accelerators takes half of the rest, so that its neighbour fits beside it.
    share = min(1.0, (gpu + neuron) / shape.num_accelerators) if shape.num_accelerators else 1.0
    memory_gib = asked.memory_gib or (math.floor(shape.memory_gib * share) if accelerated else _CPU_MEMORY_GIB)
    spans_nodes = experiment.nodes > 1
    efa = math.floor(shape.efa * share) if accelerated and spans_nodes and experiment.fabric != "tcp" else 0
    return PodResources(
        cpu=asked.cpu or (math.floor(shape.cpu * share) or shape.cpu * share if accelerated else _CPU_REQUEST),
        memory_gib=memory_gib,
        gpu=gpu,
        neuron=neuron,
        efa=efa if asked.efa is None else asked.efa,
        shm_gib=asked.shm_gib or min(_SHM_MAX_GIB, round(memory_gib * _SHM_SHARE, 2)),
        hugepages_2mi_mib=asked.hugepages_2mi_mib or 0,
    )


def _default_processes(shape: NodeShape, resources: PodResources) -> int:
    cores = shape.accelerator.cores if shape.accelerator else 1
    return resources.gpu + resources.neuron * cores or 1
