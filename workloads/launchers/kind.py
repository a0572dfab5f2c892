"""What a launcher is."""

from collections.abc import Callable
from dataclasses import dataclass

from workloads.pod import Manifest
from workloads.resolve import Run


@dataclass(frozen=True, kw_only=True)
class LauncherKind:
    """A kind of job, and what it promises; the documentation's table is made of these."""

    name: str
    manifests: Callable[[Run, str], list[Manifest]]
    """The objects of a run under a name, in the order in which they are created."""
    rendezvous: str
    restarts: str
    gang: str
    choose_when: str
