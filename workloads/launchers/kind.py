"""What a launcher is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from workloads.pod import Manifest
from workloads.resolve import Run


@dataclass(frozen=True, kw_only=True)
class LauncherKind:
    """A kind of job, and what it promises; the documentation's table is made of these."""

    name: str
    manifests: Callable[[Run, str], list[Manifest]]
    """The objects of a run under a name, in the order in which they are created, after those of `isolation.py`."""
    operator: Literal["volcano", "training", "mpi", "trainer_v2"] | None
    """Key of `operators` in the platform's stack file: whose job kind it is. None: Kubernetes' own."""
    scheme: str | None = None
    """Of `operators.training.schemes`."""
    starts: Literal["torchrun", "mpirun", "itself"] = "torchrun"
    """What starts the processes of a pod; `itself`: the pod's command is its only one."""
    local_variables: Callable[[list[int]], list[dict[str, str]]] | None = None
    """For processes that find each other without torchrun: the environment of each of several on one machine, given a
    free port for each."""
    rendezvous: str
    injects: str
    """Which variables the processes read, and who sets them."""
    restarts: str
    elasticity: str = "none: every pod of the gang is needed"
    is_elastic: bool = False
    """Whether `elastic` has an effect."""
    gang: str
    choose_when: str
