"""Fake nodes: Kubernetes' own scheduler takes their devices for real ones."""

import json
from collections.abc import Iterator

import pytest

from infra.instances import INSTANCE_TYPES
from infra.nodes import Nodes, shape_of
from tests.cluster.fleet import add_nodes, remove_nodes
from tests.cluster.kube import get, kubectl, until
from tests.cluster.paths import KUBECONFIG

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not KUBECONFIG.exists(), reason="no cluster; first: make cluster"),
]

_GROUP = {"trainyard.dev/node-group": "fake"}


@pytest.fixture
def no_nodes_after() -> Iterator[None]:
    yield
    kubectl("delete", "pods", "-l", "trainyard.dev/test=fleet", "--force", "--grace-period=0")
    remove_nodes()


@pytest.mark.parametrize(
    ("instance_type", "devices"),
    [
        ("p4d.24xlarge", {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 4}),
        ("p5.48xlarge", {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32}),
        ("trn1.32xlarge", {"aws.amazon.com/neuron": 16, "vpc.amazonaws.com/efa": 8}),
    ],
)
def test_a_node_has_its_devices_once(no_nodes_after: None, instance_type: str, devices: dict[str, int]) -> None:
    shape = shape_of(INSTANCE_TYPES[instance_type], efa=True)
    add_nodes(Nodes(name="fake", is_pool=False, shapes=(shape,), max_nodes=1, labels=_GROUP), 1)
    for name in ("first", "second"):
        kubectl("apply", "-f", "-", stdin=_pod(name, devices))
    until(lambda: _phase("first") == "Running", within_s=60)
    (second,) = get("pod", "second")
    (condition,) = second["status"]["conditions"]
    assert (second["status"]["phase"], condition["reason"]) == ("Pending", "Unschedulable")


def _pod(name: str, devices: dict[str, int]) -> str:
    limits = {device: str(count) for device, count in devices.items()}
    container = {"name": "devices", "image": "none", "resources": {"limits": limits}}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"trainyard.dev/test": "fleet"}},
            "spec": {"nodeSelector": _GROUP, "containers": [container]},
        }
    )


def _phase(name: str) -> str:
    (pod,) = get("pod", name)
    phase: str = pod["status"]["phase"]
    return phase
