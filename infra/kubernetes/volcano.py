"""Volcano, the gang scheduler, and its queues: every pod of a run starts, or none does."""

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import yaml

from infra.config import platform as config
from infra.kubernetes.helm import release
from infra.kubernetes.mirrors import chart_source, mirrored_image
from infra.kubernetes.namespaces import operator_namespace
from infra.versions import VOLCANO_IMAGES, Chart

# Volcano's default tiers, but for two: `overcommit` serves the `enqueue` action alone, and `capacity` (the default
# since 1.10) ignores the weights of queues, which `proportion` honours.
_PLUGIN_TIERS: list[list[dict[str, Any]]] = [
    [{"name": "priority"}, {"name": "gang", "enablePreemptable": False}, {"name": "conformance"}],
    [
        {"name": "drf", "enablePreemptable": False},
        {"name": "predicates"},
        {"name": "proportion"},
        {"name": "nodeorder"},
        {"name": "binpack"},
    ],
]
# Enough for a cluster of some hundred nodes, our estimate; without requests they would be the first to be evicted.
_REQUESTS = {"requests": {"cpu": "50m", "memory": "128Mi"}}


def scheduler_config(actions: Sequence[str]) -> str:
    """The text of volcano-scheduler.conf."""
    tiers = [{"plugins": plugins} for plugins in _PLUGIN_TIERS]
    return yaml.safe_dump({"actions": ", ".join(actions), "tiers": tiers}, sort_keys=False)


def volcano_values(volcano: config.Volcano, namespaces: Sequence[str], mirrors: config.Mirrors) -> dict[str, Any]:
    """Values of Volcano's chart; `namespaces` are the teams'."""
    return {
        "basic": {
            # The chart writes <registry>/<image>; the folder counts as registry, so that one prefix mirrors all three.
            "image_registry": mirrored_image(VOLCANO_IMAGES, mirrors),
            "controller_image_name": "vc-controller-manager",
            "scheduler_image_name": "vc-scheduler",
            "admission_image_name": "vc-webhook-manager",
            # The chart's `Always` needs the registry whenever a scheduler restarts.
            "image_pull_policy": "IfNotPresent",
        },
        "custom": {
            "scheduler_config_override": scheduler_config(volcano.actions),
            # The webhooks refuse pods while Volcano is down. Nothing but experiments may depend on that.
            "webhooks_namespace_selector_expressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(namespaces)}
            ],
            "scheduler_resources": _REQUESTS,
            "controller_resources": _REQUESTS,
            "admission_resources": _REQUESTS,
        },
    }


def queue_spec(queue: config.Queue) -> dict[str, Any]:
    spec: dict[str, Any] = {"weight": queue.weight, "reclaimable": True}
    if queue.capability:
        spec["capability"] = {resource: str(amount) for resource, amount in queue.capability.items()}
    return spec


class Volcano(pulumi.ComponentResource):
    """The scheduler, its controllers and webhooks, then the queues."""

    release: kubernetes.helm.v3.Release

    def __init__(
        self,
        name: str,
        *,
        volcano: config.Volcano,
        chart: Chart,
        namespaces: Sequence[str],
        mirrors: config.Mirrors,
        provider: kubernetes.Provider,
        after: Sequence[pulumi.Resource],
    ) -> None:
        super().__init__("trainyard:scheduling:Volcano", name, None, pulumi.ResourceOptions(providers=[provider]))
        # `privileged`: the scheduler mounts a folder of its node for its log's socket.
        namespace = operator_namespace(
            f"{name}-namespace",
            name=chart.namespace,
            level="privileged",
            opts=pulumi.ResourceOptions(parent=self, depends_on=after),
        )
        self.release = release(
            f"{name}-release",
            chart_source(chart, mirrors),
            name="volcano",
            namespace=chart.namespace,
            values=volcano_values(volcano, namespaces, mirrors),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[namespace]),
        )
        self._create_queues(name, volcano.queues)
        self.register_outputs({"version": chart.version})

    def _create_queues(self, name: str, queues: Sequence[config.Queue]) -> None:
        for queue in queues:
            kubernetes.apiextensions.CustomResource(
                f"{name}-queue-{queue.name}",
                api_version="scheduling.volcano.sh/v1beta1",
                kind="Queue",
                metadata={"name": queue.name},
                spec=queue_spec(queue),
                # The chart brings the CRD, and the webhook that judges queues.
                opts=pulumi.ResourceOptions(parent=self, depends_on=[self.release]),
            )
