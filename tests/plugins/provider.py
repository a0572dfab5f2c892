"""What a stand-in implements: the provider protocol as a plain Python class."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi.provider.provider import ConstructResult

from tests.plugins.differences import Difference, changes_between
from tests.plugins.values import Path, Properties


class Refused(Exception):
    """What cannot be done, for the user: shown as it is, without a traceback."""


class Unfinished(Exception):
    """Made, but not ready: the engine records the resource, and the next update goes on from it."""

    def __init__(self, reason: str, *, resource_id: str, state: Properties, inputs: Properties) -> None:
        super().__init__(reason)
        self.resource_id, self.state, self.inputs = resource_id, state, inputs


@dataclass(frozen=True, kw_only=True)
class Resource:
    """What every request about a resource says of it."""

    urn: str
    type: str
    name: str
    preview: bool = False
    timeout_s: float | None = None
    """Of the `custom_timeouts` option; None where the program sets none."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    inputs: Properties
    failures: Mapping[str, str] = field(default_factory=dict)
    """Reasons by property."""


@dataclass(frozen=True, kw_only=True)
class Live:
    """A resource as it is now."""

    resource_id: str
    state: Properties
    inputs: Properties


class Provider:
    """What a stand-in implements. Its methods run in threads, several at once."""

    package: str
    version: str
    warn: Callable[[str, str], None]
    """Shows a warning at a URN; set when the engine has said where it listens."""

    def configure(self, config: Properties) -> None:
        """Called once, unless some of the configuration is unknown in a preview: then nothing else is called either."""

    def diff_config(self, old: Properties, new: Properties) -> Difference:
        return Difference(changes=changes_between(old, new))

    def check(self, resource: Resource, old: Properties, new: Properties, seed: bytes) -> Checked:
        raise NotImplementedError

    def diff(self, resource: Resource, old: Properties, new: Properties) -> Difference:
        raise NotImplementedError

    def create(self, resource: Resource, inputs: Properties) -> Live:
        raise NotImplementedError

    def read(self, resource: Resource, resource_id: str, inputs: Properties, state: Properties) -> Live | None:
        raise NotImplementedError

    def update(self, resource: Resource, state: Properties, inputs: Properties) -> Live:
        raise NotImplementedError

    def delete(self, resource: Resource, resource_id: str, inputs: Properties, state: Properties) -> None:
        raise NotImplementedError

    def construct(
        self, name: str, resource_type: str, inputs: Mapping[str, Any], options: pulumi.ResourceOptions
    ) -> ConstructResult:
        raise Refused(f"the stand-in for {self.package} has no component {resource_type}")

    def always_secret(self, resource: Resource) -> list[Path]:
        """Properties that are secret whether or not the program says so."""
        return []

    def cancel(self) -> None:
        """The user pressed Ctrl-C: whatever waits should stop waiting."""


def unique_name(prefix: str, seed: bytes) -> str:
    """A name that the same resource of the same stack gets again in the update after the preview."""
    return f"{prefix}-{hashlib.sha256(seed + prefix.encode()).hexdigest()[:8]}"
