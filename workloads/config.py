"""An experiment's stack file, `trainyard:experiment`, as typed values.

Only what one file can say by itself is decided here. Whether the node group exists, the pods fit it or the batch
divides is the rules' business (`workloads/checks/`), which see the platform too.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, WithJsonSchema, model_validator

from infra.config.model import (
    ABSOLUTE_PATH,
    ARGUMENT_NAME,
    ENV_NAME,
    RULE_ID,
    STORE_PATH,
    VERSION,
    Model,
    Name,
    NotNegative,
    Positive,
    Rejected,
)
from infra.config.stackfile import StackFile
from infra.config.validation import shown, validate

Scalar = str | int | float | bool | None
Launcher = Literal[
    "indexed-job",
    "pytorch-job",
    "mpi-job",
    "volcano-job",
    "torchx",
    "tf-job",
    "xgboost-job",
    "paddle-job",
    "train-job",
]
Precision = Literal["bf16", "fp16", "fp32", "fp8"]


def _argument(value: object) -> object:
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict | list) for item in value)):
        raise Rejected(f"{shown(value)} cannot be an argument", "allowed: text, a number, true, false or a list")
    return value


def _environment(value: object) -> object:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise Rejected(f"{shown(value)} is no environment value", "allowed: text or a number (put it in quotes)")


def _program_form(given: object) -> str:
    return "<command>" if isinstance(given, dict | Command) else "<module>"


class Command(Model):
    """A program of your own: the list is the container's entire command, and nothing is added to it."""

    command: Annotated[list[str], Field(min_length=1)]


Argument = Annotated[
    Any,
    AfterValidator(_argument),
    WithJsonSchema({"type": ["string", "number", "boolean", "null", "array"]}),
]
EnvironmentValue = Annotated[Any, AfterValidator(_environment), WithJsonSchema({"type": ["string", "number"]})]
Program = Annotated[
    Annotated[str, Tag("<module>")] | Annotated[Command, Tag("<command>")],
    Discriminator(_program_form),
]


class Resources(Model):
    """What one pod asks for. Default: the whole node on accelerators; 0.5 CPU and 2 GiB without a CPU limit on CPU."""

    cpu: Annotated[float, Field(gt=0)] | None = None
    memory_gib: Annotated[float, Field(gt=0)] | None = None
    gpu: NotNegative | None = None
    efa: NotNegative | None = None
    neuron: NotNegative | None = None
    shm_gib: Annotated[float, Field(gt=0)] | None = None
    """/dev/shm, which counts as the pod's memory."""
    hugepages_2mi_mib: Annotated[int, Field(gt=0, multiple_of=2)] | None = None


class VolumeMount(Model):
    """A volume of the platform, and where the pods see it."""

    name: Name
    mount: Annotated[str, Field(pattern=ABSOLUTE_PATH)]


class Checkpoint(Model):
    """Where and how often a run saves; it continues from there after a restart or an edit."""

    path: Annotated[str, Field(pattern=STORE_PATH)]
    every_steps: Positive = 500
    keep: Positive = 3
    resume: bool = True


class Parallelism(Model):
    """How many processes share one copy of the model; the rest are data-parallel copies."""

    tensor: Positive = 1
    pipeline: Positive = 1
    context: Positive = 1
    sharding: Literal["none", "fsdp", "hybrid", "zero1", "zero2", "zero3"] = "none"
    """What the data-parallel copies divide among them; which of these a program knows is for its flags to say."""

    @property
    def model_processes(self) -> int:
        return self.tensor * self.pipeline * self.context


class Batch(Model):
    """Samples per optimizer step over all processes, and per process in one forward pass."""

    global_: Annotated[int, Field(gt=0, alias="global")]
    micro: Positive | None = None


class ModelShape(Model):
    """The transformer's shape, or its parameter count alone where the program has a shape of its own."""

    parameters: Positive | None = None
    layers: Positive | None = None
    hidden: Positive | None = None
    heads: Positive | None = None
    kv_heads: Positive | None = None
    vocab: Positive | None = None
    sequence: Positive | None = None


class Elastic(Model):
    """Fewest and most pods that the run continues with."""

    min: Positive
    max: Positive

    @model_validator(mode="after")
    def _min_is_not_above_max(self) -> "Elastic":
        if self.min > self.max:
            raise Rejected(f"`min` is {self.min}, above `max`, {self.max}", "lower `min` or raise `max`")
        return self


class Budget(Model):
    max_usd: Annotated[float, Field(gt=0)]


class Tracking(Model):
    experiment: str


class FabricVersions(Model):
    """What the image holds; known for the images that this repository builds."""

    libfabric: Annotated[str, Field(pattern=VERSION)] | None = None
    aws_ofi_nccl: Annotated[str, Field(pattern=VERSION)] | None = None
    nccl: Annotated[str, Field(pattern=VERSION)] | None = None


class ExperimentConfig(Model):
    """One training experiment."""

    platform: str
    """The platform's stack name: its file says which nodes, volumes, queues and teams there are."""
    team: Name = "default"
    """Whose namespace, queue and quota the run uses."""
    launcher: Launcher
    """Which kind of job carries the run."""
    rendezvous: Literal["auto", "c10d", "etcd"] = "auto"
    """Where the pods of `torchx` meet: c10d is the first pod; auto: the platform's etcd if it has one, else c10d."""
    program: Program
    """A module of training/, such as training.mnist, or {command: [...]}."""
    args: dict[Annotated[str, Field(pattern=ARGUMENT_NAME)], Argument] = {}
    """The program's own flags: `lr: 3e-4` becomes --lr 0.0003; true is a bare flag, a list repeats the flag."""
    image: Annotated[str, Field(min_length=1)] = "training"
    """An image that the platform holds, or a full reference with its digest."""
    nodes: Positive = 1
    """Pods of the gang."""
    processes_per_node: Positive | None = None
    """Default: the accelerators of one pod, or 1 on CPU."""
    node_group: Name
    """A node group or node pool of the platform."""
    resources: Resources = Resources()
    fabric: Literal["auto", "efa", "tcp"] = "auto"
    """Transport between nodes; auto: EFA where the nodes have it."""
    host_network: bool = False
    """Share the node's network namespace. EFA does not need it."""
    env: dict[Annotated[str, Field(pattern=ENV_NAME)], EnvironmentValue] = {}
    volumes: list[VolumeMount] = []
    checkpoint: Checkpoint | None = None
    parallelism: Parallelism = Parallelism()
    batch: Batch | None = None
    model: ModelShape | None = None
    precision: Precision | None = None
    queue: Name | None = None
    """Default: the team's."""
    priority: Name | None = None
    """A priority class of the platform."""
    elastic: Elastic | None = None
    restarts: NotNegative = 3
    """How often a failed run is started again before it counts as failed."""
    max_hours: Annotated[float, Field(gt=0)] | None = None
    """The run is stopped then, whatever it is doing."""
    replace: bool = False
    """Let `pulumi up` replace a run that is still going."""
    preflight: bool = False
    """Test the nodes and their network before the program starts."""
    budget: Budget | None = None
    tracking: Tracking | None = None
    fabric_versions: FabricVersions = FabricVersions()
    waive: dict[Annotated[str, Field(pattern=RULE_ID)], Annotated[str, Field(min_length=1)]] = {}
    """Rules that shall not stop this experiment, each with the reason."""

    @property
    def module(self) -> str | None:
        """The program's module; None for a command of the user's own."""
        return self.program if isinstance(self.program, str) else None


def read_experiment(stack_file: StackFile) -> ExperimentConfig:
    """The experiment of a stack file; raises InvalidStack with every problem at once."""
    return validate(ExperimentConfig, stack_file, stack_file.body)
