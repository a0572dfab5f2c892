"""What every platform registers, whatever its target: rules that hold for each resource."""

from functools import reduce
from pathlib import Path

import pytest

from infra.config.platform import PlatformConfig
from infra.digest import config_digest
from infra.unbuilt import UNBUILT
from tests.infra.lab_platform import SHARED, on_existing
from tests.infra.recorded_platform import Program, run
from tests.schemas import crd
from workloads.stacks import load, stack_path

ROOT = Path(__file__).parents[2]


def shipped(stack: str) -> PlatformConfig:
    return load(stack_path(stack)).config


@pytest.fixture(params=["local", "dev"])
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Program:
    return run(shipped(request.param), monkeypatch)


def test_every_kubernetes_resource_uses_the_explicit_provider(program: Program) -> None:
    kubernetes = [resource for resource in program.resources if resource.type.startswith("kubernetes:")]
    assert len(kubernetes) > 10
    assert {resource.provider.split("::")[-2] for resource in kubernetes} == {"cluster"}


def test_every_resource_is_the_child_of_a_component_and_named_after_it(program: Program) -> None:
    components = {resource.name for resource in program.resources if resource.type.startswith("trainyard:")}
    children = [resource for resource in program.resources if resource.type.startswith("kubernetes:")]
    assert {child.parent for child in children} <= components
    assert [child.name for child in children if not child.name.startswith(f"{child.parent}-")] == []


def test_the_mpi_operators_crd_is_the_only_one_of_its_name(program: Program) -> None:
    files = [file for group in program.of_type(":ConfigGroup") for file in group.inputs["files"]]
    versions = [
        (kind["metadata"]["name"], version["name"])
        for kind in (crd(ROOT / file) for file in files)
        for version in kind["spec"]["versions"]
    ]
    assert len(versions) == len(files)
    assert [version for name, version in versions if name == "mpijobs.kubeflow.org"] == ["v2beta1"]


def test_crds_come_before_their_operator_and_volcano_before_both(program: Program) -> None:
    for operator in ("training-operator", "mpi-operator"):
        assert f"{operator}-crds" in program[f"{operator}-release"].dependencies
        assert "volcano-release" in program[f"{operator}-crds"].dependencies


def test_an_experiments_namespace_refuses_pods_that_are_not_restricted(program: Program) -> None:
    labels = program["teams-training"].inputs["metadata"]["labels"]
    assert {labels[f"pod-security.kubernetes.io/{mode}"] for mode in ("enforce", "warn", "audit")} == {"restricted"}


def test_only_namespaces_of_node_level_software_are_privileged(program: Program) -> None:
    levels = {
        namespace.inputs["metadata"]["name"]: namespace.inputs["metadata"]["labels"][
            "pod-security.kubernetes.io/enforce"
        ]
        for namespace in program.of_type(":Namespace")
    }
    privileged = {name for name, level in levels.items() if level == "privileged"}
    assert privileged <= {"volcano-system", "nvidia-device-plugin"}
    assert levels["kubeflow"] == levels["mpi-operator"] == "restricted"


def test_every_efs_volume_has_a_claim_of_its_own_name_in_the_teams_namespace(program: Program) -> None:
    claim = program["volumes-distributed-training-shared-training"].inputs
    assert claim["metadata"] == {"name": "distributed-training-shared", "namespace": "training"}
    assert claim["spec"]["storageClassName"] == "efs-sc"
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]


@pytest.mark.parametrize("stack", ["local", "dev"])
def test_a_platform_exports_what_experiments_look_up(stack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = run(shipped(stack), monkeypatch).outputs
    assert outputs["namespaces"] == {"default": "training"}
    assert outputs["config_digest"] == config_digest(shipped(stack))
    assert ("kubeconfig" in outputs) == (stack == "dev")
    assert ("repositories" in outputs) == (stack == "dev")


def test_the_digest_knows_values_and_not_spellings() -> None:
    assert config_digest(on_existing()) == config_digest(on_existing(operators=SHARED["operators"] | {"mpi": {}}))
    assert config_digest(on_existing()) != config_digest(on_existing(operators=SHARED["operators"] | {"mpi": None}))


def test_what_is_not_built_yet_is_something_that_a_stack_file_can_say() -> None:
    for key in UNBUILT:
        reduce(getattr, key.split("."), on_existing())


def test_an_operator_that_the_stack_file_leaves_out_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    program = run(on_existing(operators={"mpi": {"enabled": False}, "training": {}}), monkeypatch)
    assert [release.inputs["name"] for release in program.of_type(":Release")] == ["training-operator"]
    assert program["training-operator-release"].inputs["values"]["gangScheduler"] == ""


def test_trainer_comes_after_the_kind_that_it_makes_and_both_after_volcano(monkeypatch: pytest.MonkeyPatch) -> None:
    program = run(on_existing(operators=SHARED["operators"] | {"trainer_v2": {"enabled": True}}), monkeypatch)
    assert "trainer-jobset-crds" in program["trainer-trainer-crds"].dependencies
    for chart in ("jobset", "trainer"):
        assert "volcano-release" in program[f"trainer-{chart}-crds"].dependencies
        assert f"trainer-{chart}-crds" in program[f"trainer-{chart}-release"].dependencies
        assert program[f"trainer-{chart}-release"].inputs["name"] == chart


def test_nothing_starts_before_the_nodes_of_a_new_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    program = run(shipped("dev"), monkeypatch)

    def waits_for_nodes(name: str) -> bool:
        before = program[name].dependencies
        return "system" in before or any(waits_for_nodes(earlier) for earlier in before)

    kubernetes = [resource.name for resource in program.resources if resource.type.startswith("kubernetes:")]
    assert kubernetes
    assert [name for name in kubernetes if not waits_for_nodes(name)] == []
