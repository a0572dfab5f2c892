"""Every kind of job on fake nodes with the devices of p4d, p5 and trn1: who gets what, and what a large gang does."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.nodes import Nodes, nodes_of
from tests.cluster.experiments import NAMESPACE, gangs, until_unschedulable
from tests.cluster.fleet import add_nodes, remove_nodes
from tests.cluster.kube import kubectl, pods, until
from tests.cluster.paths import PROJECT
from tests.cluster.pulumi_cli import Checkout
from workloads.launchers.registry import LAUNCHERS, manifests_of, run_name
from workloads.pod import Manifest
from workloads.resolve import Run
from workloads.stacks import PlatformStack, load, load_experiment

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

DEVICES = {
    "p4d.24xlarge": {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 4},
    "p5.48xlarge": {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32},
    "trn1.32xlarge": {"aws.amazon.com/neuron": 16, "vpc.amazonaws.com/efa": 8},
}
MOST_NODES = 65


@pytest.fixture
def folder(platform: Checkout, tmp_path: Path) -> Iterator[Path]:
    """A copy of the platform's stack file with a node group of each type; no nodes yet."""
    stack = yaml.safe_load((PROJECT / "Pulumi.local.yaml").read_text())
    stack["config"]["trainyard:platform"]["node_groups"] += [
        {
            "name": _group(instance_type),
            "instance_type": instance_type,
            "max": MOST_NODES,
            "labels": {"trainyard.dev/node-group": _group(instance_type)},
            "taints": [{"key": next(iter(devices))}],
        }
        for instance_type, devices in DEVICES.items()
    ]
    (tmp_path / "Pulumi.local.yaml").write_text(yaml.safe_dump(stack))
    yield tmp_path
    remove_nodes()


def test_two_pods_of_each_kind_take_two_nodes_with_all_their_devices(folder: Path) -> None:
    for instance_type in DEVICES:
        add_nodes(_nodes(folder, instance_type), 2 * len(LAUNCHERS))
    runs = {
        (launcher, instance_type): _run(folder, f"{launcher}-{_group(instance_type)}", instance_type, launcher, 2)
        for launcher in LAUNCHERS
        for instance_type in DEVICES
    }
    with _applied(*runs.values()):
        for (launcher, instance_type), run in runs.items():
            until(lambda run=run: len(_placed(run)) == 2, within_s=120, what=lambda run=run: _story(run))
            first, second = _placed(run)
            assert first["spec"]["nodeName"] != second["spec"]["nodeName"], launcher
            for pod in (first, second):
                assert pod["spec"]["nodeName"].startswith(_group(instance_type))
                limits = pod["spec"]["containers"][0]["resources"]["limits"]
                assert {name: int(limits[name]) for name in limits if name != "memory"} == DEVICES[instance_type]


def test_a_gang_of_64_starts_beside_one_of_65_that_waits(folder: Path) -> None:
    nodes = _nodes(folder, "p5.48xlarge")
    add_nodes(nodes, MOST_NODES - 1)
    larger = _run(folder, "larger", "p5.48xlarge", "volcano-job", MOST_NODES)
    # No kind that makes Jobs of Kubernetes: KWOK lets their pods succeed after a while, and the nodes would be free.
    fitting = _run(folder, "fitting", "p5.48xlarge", "pytorch-job", MOST_NODES - 1)
    one_more = _run(folder, "one-more", "p5.48xlarge", "tf-job", 1)
    with _applied(larger):
        until_unschedulable(run_name(larger))
        with _applied(fitting):
            until(lambda: len(_placed(fitting)) == MOST_NODES - 1, within_s=180, what=lambda: _story(fitting))
            with _applied(one_more):
                until_unschedulable(run_name(one_more))
                assert _placed(larger) == _placed(one_more) == []

                add_nodes(nodes, 1, first=MOST_NODES - 1)
                until(lambda: _placed(one_more), within_s=60, what=lambda: gangs(run_name(one_more)))
                assert _placed(larger) == []


def _group(instance_type: str) -> str:
    return instance_type.partition(".")[0]


def _nodes(folder: Path, instance_type: str) -> Nodes:
    platform = load(folder / "Pulumi.local.yaml")
    assert isinstance(platform, PlatformStack)
    return nodes_of(platform.config)[_group(instance_type)]


def _run(folder: Path, name: str, instance_type: str, launcher: str, nodes: int) -> Run:
    """An experiment as its stack file describes it. Nothing of it computes: the nodes are fake."""
    experiment = {
        "platform": "local",
        "launcher": launcher,
        "program": {"command": ["sleep", "infinity"]},
        "nodes": nodes,
        "node_group": _group(instance_type),
    }
    path = folder / f"Pulumi.{name}.yaml"
    path.write_text(yaml.safe_dump({"config": {"trainyard:experiment": experiment}}))
    return load_experiment(path).run


@contextmanager
def _applied(*runs: Run) -> Iterator[None]:
    """The runs' objects, strictly: a field that the API server does not know is an error."""
    manifests: list[Manifest] = [manifest for run in runs for manifest in manifests_of(run)]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    apply = ("apply", "--validate=strict", "-f", "-")
    try:
        # Trainer refuses a TrainJob whose runtime, made a moment before, it has not seen yet.
        kubectl(*apply, stdin=text, check=False)
        kubectl(*apply, stdin=text)
        yield
    finally:
        kubectl("delete", "--wait=false", "--ignore-not-found", "-f", "-", stdin=text)
        labels = ",".join(run_name(run) for run in runs)
        selector = f"app.kubernetes.io/instance in ({labels})"
        until(lambda: _is_gone(selector), within_s=120)


def _is_gone(selector: str) -> bool:
    # Nobody stops containers that never ran.
    kubectl("delete", "pods", "-n", NAMESPACE, "-l", selector, "--force", "--grace-period=0", check=False)
    return not kubectl("get", "pods", "-n", NAMESPACE, "-l", selector, "-o", "name").strip()


def _placed(run: Run) -> list[dict[str, Any]]:
    """The run's pods that have a node, but for helpers that ask for no device."""
    devices = set(DEVICES["p5.48xlarge"]) | set(DEVICES["trn1.32xlarge"])
    return [
        pod
        for pod in pods(run_name(run))
        if pod["spec"].get("nodeName") and devices & set(pod["spec"]["containers"][0]["resources"]["limits"])
    ]


def _story(run: Run) -> object:
    conditions = [group.get("status") for group in gangs(run_name(run))]
    return run_name(run), conditions, [pod["status"] for pod in pods(run_name(run))][:2]
