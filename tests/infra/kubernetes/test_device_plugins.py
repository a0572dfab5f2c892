"""Device plugins run where their devices are, whatever taints these nodes have."""

import pytest

from infra.config.platform import Mirrors
from infra.kubernetes.device_plugins import efa_values, neuron_values, nvidia_values, with_device
from infra.nodes import nodes_of
from tests.infra.lab_platform import on_eks, on_existing
from tests.infra.recorded_platform import run

NODES = list(nodes_of(on_eks()).values())


def test_a_platform_without_a_device_installs_no_plugin_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def releases(groups: list[dict[str, object]]) -> set[str]:
        program = run(on_eks(node_groups=groups), monkeypatch)
        others = {"training-operator", "mpi-operator", "etcd"}
        return {release.inputs["name"] for release in program.of_type(":Release")} - others

    system = {"name": "system", "instance_type": "m5.xlarge", "max": 2}
    assert releases([system]) == {"volcano"}
    assert releases([system, {"name": "gpu", "instance_type": "g5.xlarge", "max": 2}]) == {
        "volcano",
        "nvidia-device-plugin",
    }
    assert releases([system, {"name": "trn", "instance_type": "trn1.32xlarge", "max": 1, "efa": True}]) == {
        "volcano",
        "neuron-helm-chart",
        "aws-efa-k8s-device-plugin",
    }


def test_an_existing_cluster_has_its_own_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [{"name": "gpu", "max": 1, "allocatable": {"cpu": 8, "memory_gib": 32, "gpu": 4}}]
    program = run(on_existing(node_groups=groups), monkeypatch)
    assert not [resource for resource in program.resources if "device-plugin" in str(resource.inputs.get("name"))]


def test_the_efa_plugin_tolerates_the_taints_of_gpu_and_trainium_groups_and_the_users_own() -> None:
    values = efa_values(with_device(NODES, lambda shape: shape.efa), Mirrors())
    keys = {toleration["key"] for toleration in values["tolerations"]}
    assert keys == {"CriticalAddonsOnly", "nvidia.com/gpu", "aws.amazon.com/neuron", "team"}


def test_the_efa_plugin_runs_on_the_instance_types_of_this_platform() -> None:
    values = efa_values(with_device(NODES, lambda shape: shape.efa), Mirrors())
    assert values["supportedInstanceLabels"]["values"] == ["p4d.24xlarge", "trn1.32xlarge"]


def test_the_gpu_plugin_tolerates_only_what_its_own_nodes_are_tainted_with() -> None:
    values = nvidia_values(with_device(NODES, lambda shape: shape.gpu), Mirrors())
    assert {toleration["key"] for toleration in values["tolerations"]} == {
        "CriticalAddonsOnly",
        "nvidia.com/gpu",
        "team",
    }


def test_the_neuron_chart_installs_the_plugin_and_neither_scheduler_nor_repair() -> None:
    values = neuron_values(with_device(NODES, lambda shape: shape.neuron), Mirrors(images={"public.ecr.aws": "corp"}))
    assert values["npd"] == values["scheduler"] == {"enabled": False}
    assert values["devicePlugin"]["image"]["repository"] == "corp/neuron/neuron-device-plugin"
