"""Device plugins: without them the nodes' GPUs, EFA interfaces and Trainium chips cannot be asked for."""

from collections.abc import Callable, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from infra.config.nodes import Taint
from infra.config.platform import Mirrors
from infra.kubernetes.helm import release
from infra.kubernetes.mirrors import chart_source, mirrored_image
from infra.kubernetes.namespaces import operator_namespace
from infra.nodes import Nodes, NodeShape
from infra.versions import (
    EFA_DEVICE_PLUGIN,
    EFA_DEVICE_PLUGIN_IMAGE,
    NEURON,
    NEURON_DEVICE_PLUGIN_IMAGE,
    NVIDIA_DEVICE_PLUGIN,
    NVIDIA_DEVICE_PLUGIN_IMAGE,
    Chart,
)


def with_device(nodes: Sequence[Nodes], has: Callable[[NodeShape], int]) -> list[Nodes]:
    """The groups and pools of which some node has the device."""
    return [group for group in nodes if any(has(shape) for shape in group.shapes)]


def tolerations(nodes: Sequence[Nodes]) -> list[dict[str, str]]:
    """For every taint of these nodes: a plugin must run wherever its device is, whatever keeps other pods away."""
    taints: dict[Taint, None] = dict.fromkeys(taint for group in nodes for taint in group.taints)
    return [
        {"key": "CriticalAddonsOnly", "operator": "Exists"},
        *({"key": taint.key, "operator": "Exists", "effect": taint.effect} for taint in taints),
    ]


def nvidia_values(nodes: Sequence[Nodes], mirrors: Mirrors) -> dict[str, Any]:
    """The chart chooses nodes by `nvidia.com/gpu.present`, which the AL2023 NVIDIA image sets as it boots."""
    return {
        "image": {"repository": mirrored_image(NVIDIA_DEVICE_PLUGIN_IMAGE, mirrors)},
        "tolerations": tolerations(nodes),
    }


def efa_values(nodes: Sequence[Nodes], mirrors: Mirrors) -> dict[str, Any]:
    """The chart's own list of instance types is as old as the chart, and it tolerates no accelerator's taint."""
    types = sorted({shape.name for group in nodes for shape in group.shapes if shape.efa})
    return {
        "image": {"repository": mirrored_image(EFA_DEVICE_PLUGIN_IMAGE, mirrors)},
        "supportedInstanceLabels": {"values": types},
        "tolerations": tolerations(nodes),
    }


def neuron_values(nodes: Sequence[Nodes], mirrors: Mirrors) -> dict[str, Any]:
    """The plugin alone: node repair is EKS's, and pods take whole nodes, so no scheduler need place their chips."""
    return {
        "devicePlugin": {
            "image": {"repository": mirrored_image(NEURON_DEVICE_PLUGIN_IMAGE, mirrors)},
            "tolerations": tolerations(nodes),
        },
        "npd": {"enabled": False},
        "scheduler": {"enabled": False},
    }


class DevicePlugins(pulumi.ComponentResource):
    """One release for each kind of device that some node group or pool has."""

    def __init__(
        self,
        name: str,
        *,
        nodes: Sequence[Nodes],
        mirrors: Mirrors,
        provider: kubernetes.Provider,
        after: Sequence[pulumi.Resource],
    ) -> None:
        super().__init__("trainyard:nodes:DevicePlugins", name, None, pulumi.ResourceOptions(providers=[provider]))
        self._name, self._mirrors = name, mirrors
        if with_gpu := with_device(nodes, lambda shape: shape.gpu):
            # `privileged`: every device plugin mounts the kubelet's socket.
            namespace = operator_namespace(
                f"{name}-nvidia-namespace",
                name=NVIDIA_DEVICE_PLUGIN.namespace,
                level="privileged",
                opts=pulumi.ResourceOptions(parent=self, depends_on=after),
            )
            self._install(NVIDIA_DEVICE_PLUGIN, nvidia_values(with_gpu, mirrors), [namespace])
        if with_efa := with_device(nodes, lambda shape: shape.efa):
            self._install(EFA_DEVICE_PLUGIN, efa_values(with_efa, mirrors), after)
        if with_neuron := with_device(nodes, lambda shape: shape.neuron):
            self._install(NEURON, neuron_values(with_neuron, mirrors), after)
        self.register_outputs({})

    def _install(self, chart: Chart, values: dict[str, Any], after: Sequence[pulumi.Resource]) -> None:
        release(
            f"{self._name}-{chart.name}",
            chart_source(chart, self._mirrors),
            name=chart.name,
            namespace=chart.namespace,
            values=values,
            opts=pulumi.ResourceOptions(parent=self, depends_on=after),
        )
