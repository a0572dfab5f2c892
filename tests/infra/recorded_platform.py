"""A platform's program, run under Pulumi's mocks, and every resource that it registered.

AWS is left out: the cluster of a platform on EKS is a stand-in with a provider and one node group.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest
from pulumi.runtime import mocks, rpc
from pulumi.runtime.config import set_all_config
from pulumi.runtime.stack import get_root_resource

import infra.aws.eks
import infra.platform
from infra.config.platform import EksPlatform, PlatformConfig
from infra.platform import deploy_platform

SECRETS = {"trainyard:dockerhub": "hunter2", "trainyard:kubeconfig": "the-kubeconfig"}


@dataclass(frozen=True, kw_only=True)
class Registered:
    """One resource, as the engine would be told of it."""

    type: str
    name: str
    inputs: dict[str, Any]
    parent: str
    provider: str
    dependencies: frozenset[str]
    """Names of the resources that it waits for itself."""
    shown_inputs: dict[str, Any]
    """With every secret as `[secret]`, as previews and states show them."""


@dataclass(frozen=True, kw_only=True)
class Program:
    resources: list[Registered]
    outputs: dict[str, Any]

    def of_type(self, *endings: str) -> list[Registered]:
        return [resource for resource in self.resources if resource.type.endswith(endings)]

    def __getitem__(self, name: str) -> Registered:
        (found,) = [resource for resource in self.resources if resource.name == name]
        return found


class _Monitor(mocks.MockMonitor):
    def __init__(self) -> None:
        super().__init__(_Echo())
        self.registered: list[Registered] = []

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 (gRPC's name)
        if request.type != "pulumi:pulumi:Stack":
            inputs = rpc.deserialize_properties(request.object)
            self.registered.append(
                Registered(
                    type=request.type,
                    name=request.name,
                    inputs=_without_marks(inputs, secret=lambda value: value),
                    parent=request.parent.rpartition("::")[2],
                    provider=request.provider or dict(request.providers).get("kubernetes", ""),
                    dependencies=frozenset(urn.rpartition("::")[2] for urn in request.dependencies),
                    shown_inputs=_without_marks(inputs, secret=lambda value: "[secret]"),
                )
            )
        return super().RegisterResource(request)  # type: ignore[no-untyped-call]


def _without_marks(node: Any, secret: Callable[[Any], Any]) -> Any:
    """Inputs with each value that the wire marks as secret replaced."""
    if rpc.is_rpc_secret(node):
        return secret(_without_marks(rpc.unwrap_rpc_secret(node), secret))
    if isinstance(node, dict):
        return {key: _without_marks(value, secret) for key, value in node.items()}
    if isinstance(node, list):
        return [_without_marks(value, secret) for value in node]
    return node


class _Echo(mocks.Mocks):
    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        return f"{args.name}-id", dict(args.inputs)

    def call(self, args: mocks.MockCallArgs) -> dict[str, Any]:
        raise AssertionError(f"the Kubernetes half asked a cloud for {args.token}")


def run(config: PlatformConfig, monkeypatch: pytest.MonkeyPatch, stack: str = "lab") -> Program:
    """The program of a platform; on EKS with a stand-in for what AWS holds."""
    monkeypatch.setattr(infra.aws.eks, "build_cluster", _stand_in)
    monkeypatch.setattr(infra.platform, "refuse_foreign_mpi_jobs", lambda stack_name, cluster: None)
    monitor = _Monitor()
    mocks.set_mocks(_Echo(), project="trainyard", stack=stack, preview=False, monitor=monitor)
    set_all_config(dict(SECRETS), secret_keys=list(SECRETS))
    root = get_root_resource()
    assert root is not None
    root.outputs.clear()
    region = "us-east-1" if isinstance(config, EksPlatform) else None
    mocks.test(lambda: deploy_platform(stack, config, region))()  # type: ignore[no-untyped-call]
    return Program(resources=monitor.registered, outputs=dict(root.outputs))


def _stand_in(stack_name: str, config: EksPlatform, region: str) -> infra.aws.eks.Cluster:
    handles = {
        fsx.name: infra.aws.eks.FsxHandle(
            id=pulumi.Output.from_input(f"fs-{fsx.name}"),
            dns_name=pulumi.Output.from_input(f"{fsx.name}.fsx.{region}.amazonaws.com"),
            mount_name=pulumi.Output.from_input("abcdef"),
        )
        for fsx in config.storage.fsx
    }
    return infra.aws.eks.Cluster(
        provider=kubernetes.Provider("cluster", kubeconfig="{}", cluster_identifier=stack_name),
        kubeconfig=pulumi.Output.from_input("{}"),
        ready=[pulumi.CustomResource("aws:eks/nodeGroup:NodeGroup", "system")],
        efs_ids={efs.name: pulumi.Output.from_input(f"fs-{efs.name}") for efs in config.storage.efs},
        fsx=handles,
        buckets={},
        repositories={},
    )
