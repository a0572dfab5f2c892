"""Builds a platform's AWS half against mocks and keeps what was registered, with parents and options."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pulumi
from pulumi.runtime import Mocks, set_mocks
from pulumi.runtime.mocks import MockCallArgs, MockMonitor, MockResourceArgs
from pulumi.runtime.rpc import deserialize_properties

from infra.aws.eks import Cluster, build_cluster
from infra.config.platform import EksPlatform
from workloads.stacks import load, stack_path

REGION = "us-east-1"
ACCOUNT = "123456789012"


@dataclass(frozen=True, kw_only=True)
class Registered:
    type: str
    name: str
    inputs: dict[str, Any]
    parent: str
    """URN; empty for what has none."""
    protect: bool
    ignored: list[str]
    depends_on: list[str]
    """URNs of everything that it waits for."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    cluster: Cluster
    resources: list[Registered]

    def of_type(self, token: str) -> list[Registered]:
        return [resource for resource in self.resources if resource.type == token]

    def named(self, name: str, token: str) -> Registered:
        (found,) = [resource for resource in self.of_type(token) if resource.name == name]
        return found


class _Aws(Mocks):
    """What AWS would answer; before the first `up`, nothing that it has not been told."""

    def __init__(self, *, knows_outputs: bool) -> None:
        self._knows_outputs = knows_outputs

    def new_resource(self, args: MockResourceArgs) -> tuple[str, dict[str, Any]]:
        if not self._knows_outputs:
            return "", {}
        computed = {
            "arn": f"arn:{args.name}",
            "name": args.name,
            "latestVersion": 1,
            "dnsName": f"{args.name}.fsx",
            "mountName": "fsx",
            "clusterSecurityGroupId": "sg-cluster",
            "kubeconfigJson": "{}",
            "oidcIssuer": "oidc.eks.amazonaws.com/id/1",
            "repositoryUrl": f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/{args.inputs.get('name')}",
        }
        return f"id-{args.name}", {**computed, **args.inputs}

    def call(self, args: MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        return {"accountId": ACCOUNT, "partition": "aws"}, []


class _Monitor(MockMonitor):
    def __init__(self, mocks: Mocks) -> None:
        super().__init__(mocks)
        self.registered: list[Registered] = []

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802, the RPC's name
        if request.type != "pulumi:pulumi:Stack":
            self.registered.append(
                Registered(
                    type=request.type,
                    name=request.name,
                    inputs=deserialize_properties(request.object),
                    parent=request.parent,
                    protect=request.protect,
                    ignored=list(request.ignoreChanges),
                    depends_on=list(request.dependencies),
                )
            )
        return super().RegisterResource(request)


def record(config: EksPlatform, stack: str = "prod", *, knows_outputs: bool = True) -> Recording:
    mocks = _Aws(knows_outputs=knows_outputs)
    monitor = _Monitor(mocks)
    set_mocks(mocks, project="trainyard", stack=stack, preview=not knows_outputs, monitor=monitor)
    built: list[Cluster] = []

    @pulumi.runtime.test
    def program() -> None:
        built.append(build_cluster(stack, config, REGION))

    program()
    return Recording(cluster=built[0], resources=monitor.registered)


def platform(stack: str) -> EksPlatform:
    config = load(stack_path(stack)).config  # type: ignore[union-attr]
    assert isinstance(config, EksPlatform)
    return config


@cache
def recording(stack: str) -> Recording:
    """The platform of a shipped stack file, built once per test process."""
    return record(platform(stack), stack)


def changed(config: EksPlatform, **updates: Any) -> EksPlatform:
    """The same platform with other values at dotted keys, validated anew: `network__nat="single"`."""
    body = config.model_dump(by_alias=True)
    for key, value in updates.items():
        *parents, last = key.split("__")
        place = body
        for parent in parents:
            place = place[parent]
        place[last] = value
    return EksPlatform.model_validate(body)


def statements(policy: str) -> Iterator[dict[str, Any]]:
    yield from json.loads(policy)["Statement"]


def decoded(user_data: str) -> str:
    return base64.b64decode(user_data).decode()
