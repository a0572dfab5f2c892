"""Gangs: all of a run's pods start, or none does. On the real node, and on a fake fleet with the devices of p4d."""

from collections.abc import Iterator

import pytest
import yaml

from infra.nodes import Nodes, nodes_of
from tests.cluster.experiments import running, until_running, until_succeeded, until_unschedulable
from tests.cluster.fleet import add_nodes, remove_nodes
from tests.cluster.kube import phases, pods, until
from tests.cluster.pulumi_cli import Checkout
from workloads.stacks import PlatformStack, load

pytestmark = pytest.mark.cluster

_GROUP = "gpu-a100"
_GPUS, _EFAS = 8, 4  # of one p4d.24xlarge


def test_a_gang_of_which_only_half_fits_waits_whole_and_starts_when_room_appears(platform: Checkout) -> None:
    with running(platform, "mnist", "args.steps=20000") as first:
        until_running(first, 2)
        with running(platform, "mnist-indexed", "args.steps=100") as second:
            until_unschedulable(second)
            assert phases(second) == ["Pending", "Pending"]
            assert not any(_node_of(pod) for pod in pods(second))

            platform.destroy("mnist")
            until_succeeded(second)


@pytest.fixture
def fleet(platform: Checkout) -> Iterator[Nodes]:
    """A group of up to four p4d nodes in the platform's stack file. The test adds the nodes."""
    path = platform.folder / "Pulumi.local.yaml"
    stack = yaml.safe_load(path.read_text())
    group = {
        "name": _GROUP,
        "instance_type": "p4d.24xlarge",
        "max": 4,
        "labels": {"trainyard.dev/node-group": _GROUP},
        "taints": [{"key": "nvidia.com/gpu"}],
    }
    stack["config"]["trainyard:platform"]["node_groups"].append(group)
    path.write_text(yaml.safe_dump(stack))
    loaded = load(path)
    assert isinstance(loaded, PlatformStack)
    yield nodes_of(loaded.config)[_GROUP]
    remove_nodes()
    platform.restore("local")


@pytest.mark.parametrize("launcher", ["pytorch-job", "indexed-job", "volcano-job"])
def test_a_gang_of_four_waits_for_its_fourth_node(platform: Checkout, fleet: Nodes, launcher: str) -> None:
    add_nodes(fleet, 3)
    settings = ["platform=local", "nodes=4", f"launcher={launcher}", "volumes[0].name=distributed-training-shared"]
    with running(platform, "fsdp", *settings) as run:
        until_unschedulable(run)
        assert not any(_node_of(pod) for pod in pods(run))

        add_nodes(fleet, 1, first=3)
        until(lambda: all(_node_of(pod) for pod in pods(run)), within_s=60, what=lambda: phases(run))
        assert sorted(str(_node_of(pod)) for pod in pods(run)) == [f"{_GROUP}-{index}" for index in range(4)]
        for pod in pods(run):
            limits = pod["spec"]["containers"][0]["resources"]["limits"]
            assert int(limits["nvidia.com/gpu"]) == _GPUS
            assert int(limits["vpc.amazonaws.com/efa"]) == _EFAS


def _node_of(pod: dict[str, object]) -> object:
    spec = pod["spec"]
    assert isinstance(spec, dict)
    return spec.get("nodeName")
