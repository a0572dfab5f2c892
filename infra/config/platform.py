"""A platform's stack file, `trainyard:platform`, as typed values.

Two targets share most of it: `eks` builds the cluster and its nodes on AWS, `existing` furnishes a cluster that is
there already. Each has a class of its own, so that neither accepts the other's keys.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from infra.config.model import CIDR, QUANTITY, VERSION, Model, Name, Positive, Rejected, SecretName
from infra.config.nodes import ExistingNodeGroup, NodeGroup, NodePool
from infra.config.stackfile import StackFile
from infra.config.storage import Storage
from infra.config.validation import shown, validate


def _quantity(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(QUANTITY, value):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return value
    raise Rejected(f"{shown(value)} is no amount", "allowed: an amount as Kubernetes writes it: 16, 0.5, 500m, 64Gi")


Quantity = Annotated[
    Any, AfterValidator(_quantity), WithJsonSchema({"type": ["integer", "number", "string"], "minimum": 0})
]
"""An amount as Kubernetes writes it: 16, 0.5, 500m, 64Gi."""


class EksCluster(Model):
    """The control plane."""

    kubernetes_version: Annotated[str, Field(pattern=VERSION)] = "1.33"
    """Minor version of the control plane and its nodes."""
    public_access_cidrs: list[Annotated[str, Field(pattern=CIDR)]] = []
    """Who reaches the API server from the internet; empty: nobody, the endpoint is private only."""
    admins: list[str] = []
    """ARNs of the IAM principals with cluster-admin access entries."""
    deletion_protection: bool = True
    """Refuse to delete the cluster; turn it off where whole environments come and go."""


class ExistingCluster(Model):
    """A cluster that is there already; name a context, or a secret that holds a kubeconfig."""

    context: str | None = None
    """A context of the kubeconfig that Pulumi runs with ($KUBECONFIG, else ~/.kube/config)."""
    kubeconfig: SecretName | None = None
    """Names a secret of this stack that holds a whole kubeconfig."""

    @model_validator(mode="after")
    def _names_one_cluster(self) -> "ExistingCluster":
        if (self.context is None) == (self.kubeconfig is None):
            given = "both" if self.context else "neither"
            raise Rejected(f"{given} of `context` and `kubeconfig` given", "keep exactly one")
        return self


class Network(Model):
    """The VPC."""

    cidr: Annotated[str, Field(pattern=CIDR)] = "10.0.0.0/16"
    """Address range of the VPC; every pod takes an address of it."""
    zones: Annotated[list[str], Field(min_length=2)]
    """Availability zones, two at least: EKS refuses a single one."""
    nat: Literal["single", "per-zone"] = "single"
    """One NAT gateway, or one in each zone so that no zone depends on another."""


class PullSecret(Model):
    """Credentials of a registry, so that pulls are not rate-limited."""

    name: Name
    registry: str = "docker.io"
    username: str
    password: SecretName


class Images(Model):
    """Where images come from."""

    registry: str = "ecr"
    """`ecr` for the account's own repositories, else a registry's host name."""
    build: list[Name] = ["training"]
    """The images of training/images/ that this platform holds."""
    pull_secret: PullSecret | None = None


class Queue(Model):
    """A Volcano queue."""

    name: Name
    weight: Positive = 1
    """Share of the cluster when queues compete."""
    capability: dict[str, Quantity] = {}
    """Most that the queue may hold at once, by resource: `{cpu: 64, nvidia.com/gpu: 16}`."""


class Volcano(Model):
    """The gang scheduler."""

    version: Annotated[str, Field(pattern=VERSION)] | None = None
    """Chart version; default: the newest that suits the Kubernetes version."""
    actions: list[Literal["enqueue", "allocate", "preempt", "reclaim", "backfill"]] = [
        "allocate",
        "preempt",
        "reclaim",
        "backfill",
    ]
    """Scheduler actions. Without `enqueue`: it makes no pods for a gang that does not fit, so no autoscaler sees it."""
    queues: list[Queue] = []


class TrainingOperator(Model):
    """Kubeflow Training Operator v1. MPIJob is not a scheme of it here: the MPI operator owns that kind."""

    schemes: Annotated[list[Literal["tfjob", "pytorchjob", "xgboostjob", "paddlejob"]], Field(min_length=1)] = [
        "tfjob",
        "pytorchjob",
        "xgboostjob",
        "paddlejob",
    ]


class MpiOperator(Model):
    """Kubeflow MPI operator, MPIJob v2beta1."""

    enabled: bool = True


class TrainerV2(Model):
    """Kubeflow Trainer v2 with JobSet."""

    enabled: bool = False


class Etcd(Model):
    """etcd, where torchrun's processes meet in jobs of `torchx`."""

    enabled: bool = False
    members: Literal[1, 3, 5] = 3
    """One loses its data with its pod; three outlive the loss of one, five of two. Another number makes a new etcd."""


class Operators(Model):
    """What runs jobs; a missing key means that the operator is not installed."""

    volcano: Volcano | None = None
    training: TrainingOperator | None = None
    mpi: MpiOperator | None = None
    trainer_v2: TrainerV2 = TrainerV2()
    etcd: Etcd = Etcd()


class Priority(Model):
    """A priority class that experiments name."""

    name: Name
    value: Annotated[int, Field(ge=-2_147_483_648, le=1_000_000_000)]
    """Higher is scheduled first; a thousand millions and more are Kubernetes' own."""
    preempts: bool = False
    """Whether it may evict runs of lower priority."""


class Team(Model):
    """Who runs experiments: a namespace, a queue and a quota."""

    name: Name
    namespace: Name
    queue: Name = "default"
    quota: dict[str, Quantity] = {}
    """ResourceQuota of the namespace, by resource: `{requests.cpu: 64, requests.nvidia.com/gpu: 16}`."""


class Mlflow(Model):
    enabled: bool = False


class Tracking(Model):
    """Experiment tracking."""

    mlflow: Mlflow = Mlflow()


class Monitoring(Model):
    """Metrics of the cluster and its accelerators."""

    prometheus: bool = False
    dcgm: bool = False
    dashboards: bool = False


class Mirrors(Model):
    """Where charts and images really are, for clusters without the internet: a registry or a local folder."""

    charts: dict[str, str] = {}
    images: dict[str, str] = {}


class Budget(Model):
    max_usd_per_hour: Annotated[float, Field(gt=0)]
    """Most that the platform may cost with every node group at its maximum."""


class PlatformBase(Model):
    """What both targets have."""

    storage: Storage = Storage()
    images: Images = Images()
    operators: Operators = Operators()
    priorities: list[Priority] = []
    teams: Annotated[list[Team], Field(min_length=1)]
    tracking: Tracking = Tracking()
    monitoring: Monitoring = Monitoring()
    mirrors: Mirrors = Mirrors()
    budget: Budget | None = None


class EksPlatform(PlatformBase):
    """A platform that builds its cluster on AWS; the region is `aws:region` beside this key."""

    target: Literal["eks"]
    cluster: EksCluster = EksCluster()
    network: Network
    node_groups: list[NodeGroup] = []
    node_pools: list[NodePool] = []


class ExistingPlatform(PlatformBase):
    """A platform on a cluster that is there already."""

    target: Literal["existing"]
    cluster: ExistingCluster
    node_groups: list[ExistingNodeGroup] = []


PlatformConfig = EksPlatform | ExistingPlatform


class _Target(Model):
    """The key that decides which class the rest is."""

    model_config = {"extra": "ignore"}
    target: Literal["eks", "existing"]


def read_platform(stack_file: StackFile) -> PlatformConfig:
    """The platform of a stack file; raises InvalidStack with every problem at once."""
    target = validate(_Target, stack_file, stack_file.body).target
    if target == "eks":
        return validate(EksPlatform, stack_file, stack_file.body)
    return validate(ExistingPlatform, stack_file, stack_file.body)
