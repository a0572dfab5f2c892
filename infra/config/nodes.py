"""Node groups and node pools as a platform's stack file declares them."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from infra.config.model import CAPACITY_RESERVATION, Model, Name, NotNegative, Positive, Rejected
from infra.findings import nearest
from infra.instances import INSTANCE_TYPES

_MAX_NODES = 1000  # the node count beyond which AWS asks to be consulted about a control plane


def _known_instance_type(name: str) -> str:
    if name not in INSTANCE_TYPES:
        family = [known for known in INSTANCE_TYPES if known.startswith(name.partition(".")[0] + ".")]
        raise Rejected(
            f'"{name}" is not in the instance table',
            f"allowed: {', '.join(family or INSTANCE_TYPES)}.{nearest(name, INSTANCE_TYPES)}",
        )
    return name


InstanceName = Annotated[
    str, AfterValidator(_known_instance_type), Field(json_schema_extra={"enum": list(INSTANCE_TYPES)})
]
NumNodes = Annotated[int, Field(ge=0, le=_MAX_NODES)]


class CapacityBlock(Model):
    """An EC2 Capacity Block for ML that has been bought."""

    block: Annotated[str, Field(pattern=CAPACITY_RESERVATION)]


class CapacityReservation(Model):
    """An on-demand capacity reservation."""

    reservation: Annotated[str, Field(pattern=CAPACITY_RESERVATION)]


def _capacity_form(given: object) -> str:
    if isinstance(given, CapacityReservation) or (isinstance(given, dict) and "reservation" in given):
        return "<reservation>"
    return "<block>" if isinstance(given, dict | CapacityBlock) else "<market>"


Capacity = Annotated[
    Annotated[Literal["on-demand", "spot"], Tag("<market>")]
    | Annotated[CapacityBlock, Tag("<block>")]
    | Annotated[CapacityReservation, Tag("<reservation>")],
    Discriminator(_capacity_form),
]


class Taint(Model):
    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class NodeGroup(Model):
    """An EKS managed node group of one instance type."""

    name: Name
    instance_type: InstanceName
    min: NumNodes = 0
    max: NumNodes
    zone: str | None = None
    """Its only availability zone; EFA and capacity blocks need one. Default: all zones, with EFA the first."""
    efa: bool = False
    """Attach every EFA interface that the type has, in a placement group of one zone."""
    capacity: Capacity = "on-demand"
    disk_gib: Positive = 200
    """Encrypted root volume of each node."""
    labels: dict[str, str] = {}
    taints: list[Taint] = []

    @model_validator(mode="after")
    def _min_is_not_above_max(self) -> "NodeGroup":
        if self.min > self.max:
            raise Rejected(f"`min` is {self.min}, above `max`, {self.max}", "lower `min` or raise `max`")
        return self

    @model_validator(mode="after")
    def _type_takes_efa(self) -> "NodeGroup":
        if self.efa and not INSTANCE_TYPES[self.instance_type].num_efa:
            with_efa = ", ".join(name for name, row in INSTANCE_TYPES.items() if row.num_efa)
            raise Rejected(
                f"`efa: true`, but {self.instance_type} takes no EFA interface", f"drop `efa`, or use one of {with_efa}"
            )
        return self


class Allocatable(Model):
    """What pods can have of one node, after the system's and the DaemonSets' share."""

    cpu: Annotated[float, Field(gt=0)]
    memory_gib: Annotated[float, Field(gt=0)]
    gpu: NotNegative = 0
    efa: NotNegative = 0
    neuron: NotNegative = 0


class ExistingNodeGroup(Model):
    """Nodes that are there already, found by their labels."""

    name: Name
    labels: dict[str, str] = {}
    """Labels that select these nodes; none: any node of the cluster."""
    max: NumNodes
    instance_type: InstanceName | None = None
    """The EC2 type, where the nodes are one; else `allocatable` says what they offer."""
    allocatable: Allocatable | None = None
    taints: list[Taint] = []

    @model_validator(mode="after")
    def _says_what_a_node_offers(self) -> "ExistingNodeGroup":
        if (self.instance_type is None) == (self.allocatable is None):
            given = "both" if self.instance_type else "neither"
            raise Rejected(
                f"{given} of `instance_type` and `allocatable` given", "keep exactly one: the EC2 type, or the figures"
            )
        return self


class PoolLimits(Model):
    """Where Karpenter stops adding nodes."""

    cpu: Positive | None = None
    memory_gib: Positive | None = None
    nodes: Positive | None = None


class NodePool(Model):
    """A Karpenter node pool: nodes come when pods wait, and go when they end."""

    name: Name
    instance_types: Annotated[list[InstanceName], Field(min_length=1)]
    capacity: Literal["on-demand", "spot"] = "on-demand"
    limits: PoolLimits = PoolLimits()
    zone: str | None = None
