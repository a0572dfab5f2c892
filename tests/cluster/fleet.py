"""Fake nodes for a platform's node groups: they offer what the instance table says, and nothing on them computes.

KWOK answers for their kubelets, so schedulers and operators see GPUs, EFA interfaces and Trainium chips, bind pods to
them and watch the pods run.
"""

from typing import Any

import kubernetes.client as api
import kubernetes.config

from infra.nodes import Nodes, NodeShape
from tests.cluster.paths import KUBECONFIG

_FAKE = {"kwok.x-k8s.io/node": "fake"}
"""The annotation by which KWOK knows its nodes; here a label too, so that they can be found."""


def add_nodes(nodes: Nodes, count: int, *, first: int = 0) -> None:
    """Makes `count` nodes of a group, numbered from `first`."""
    core = _core()
    for index in range(first, first + count):
        core.create_node(_node(f"{nodes.name}-{index}", nodes))


def remove_nodes() -> None:
    """Removes every fake node."""
    _core().delete_collection_node(label_selector=",".join(f"{key}={value}" for key, value in _FAKE.items()))


def _node(name: str, nodes: Nodes) -> dict[str, Any]:
    shape = nodes.shapes[0]
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in nodes.taints]
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": shape.name,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**labels, **_FAKE, **nodes.labels}, "annotations": _FAKE},
        "spec": {"taints": taints},
        "status": {"capacity": _offered(shape), "allocatable": _offered(shape)},
    }


def _offered(shape: NodeShape) -> dict[str, str]:
    devices = {"nvidia.com/gpu": shape.gpu, "vpc.amazonaws.com/efa": shape.efa, "aws.amazon.com/neuron": shape.neuron}
    return {
        "cpu": f"{round(shape.cpu * 1000)}m",
        "memory": f"{round(shape.memory_gib * 1024)}Mi",
        "ephemeral-storage": "1000Gi",
        "hugepages-2Mi": "0",
        "pods": "110",
        **{device: str(count) for device, count in devices.items() if count},
    }


def _core() -> api.CoreV1Api:
    return api.CoreV1Api(kubernetes.config.new_client_from_config(str(KUBECONFIG)))
