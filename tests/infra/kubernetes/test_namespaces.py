"""Teams: their namespaces, quotas, priorities, and the registry's credentials."""

import base64
import json

import pytest

from infra.kubernetes.secrets import docker_config
from tests.infra.lab_platform import on_existing
from tests.infra.recorded_platform import SECRETS, Program, run


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    return run(on_existing(), monkeypatch)


def test_teams_that_share_a_namespace_get_it_once(program: Program) -> None:
    names = [namespace.inputs["metadata"]["name"] for namespace in program.of_type(":Namespace")]
    assert sorted(names) == ["etcd", "kubeflow", "mpi-operator", "product", "research", "volcano-system"]


def test_a_quota_binds_its_teams_namespace_and_teams_without_one_have_none(program: Program) -> None:
    (quota,) = program.of_type(":ResourceQuota")
    assert quota.inputs["metadata"] == {"name": "vision", "namespace": "research"}
    assert quota.inputs["spec"] == {"hard": {"requests.nvidia.com/gpu": "16", "pods": "100"}}


def test_only_a_priority_that_says_so_evicts_others(program: Program) -> None:
    policies = {
        priority.inputs["metadata"]["name"]: priority.inputs["preemptionPolicy"]
        for priority in program.of_type(":PriorityClass")
    }
    assert policies == {"low": "Never", "high": "PreemptLowerPriority"}


def test_every_teams_namespace_has_the_registrys_credentials_and_never_in_the_open(program: Program) -> None:
    secrets = program.of_type(":Secret")
    assert {secret.inputs["metadata"]["namespace"] for secret in secrets} == {"research", "product"}
    for secret in secrets:
        assert secret.inputs["type"] == "kubernetes.io/dockerconfigjson"
        assert SECRETS["trainyard:dockerhub"] in secret.inputs["stringData"][".dockerconfigjson"]
    in_the_open = [resource.name for resource in program.resources if "hunter2" in str(resource.shown_inputs)]
    assert in_the_open == []


def test_docker_hub_is_written_under_the_name_that_docker_looks_up() -> None:
    auths = json.loads(docker_config("docker.io", "me", "pw"))["auths"]
    assert list(auths) == ["https://index.docker.io/v1/"]
    assert base64.b64decode(auths["https://index.docker.io/v1/"]["auth"]) == b"me:pw"
    assert list(json.loads(docker_config("ghcr.io", "me", "pw"))["auths"]) == ["ghcr.io"]


def test_a_kubeconfig_in_a_secret_reaches_provider_and_exports(monkeypatch: pytest.MonkeyPatch) -> None:
    program = run(on_existing(cluster={"kubeconfig": {"secret": "kubeconfig"}}, images={}), monkeypatch)
    assert program["cluster"].inputs["kubeconfig"] == SECRETS["trainyard:kubeconfig"]
    assert program["cluster"].inputs["clusterIdentifier"] == "lab"
    assert "kubeconfig" in program.outputs
