"""Shared volumes, and what their claims bind to."""

from typing import Any

import pytest

from tests.infra.lab_platform import on_eks, on_existing
from tests.infra.recorded_platform import Program, Registered, run
from tests.schemas import validate_manifest


@pytest.fixture
def eks(monkeypatch: pytest.MonkeyPatch) -> Program:
    return run(on_eks(), monkeypatch)


def manifest(resource: Registered) -> dict[str, Any]:
    """The Kubernetes object of a resource; Pulumi's inputs are its fields."""
    return {key: value for key, value in resource.inputs.items() if value is not None}


def test_every_volume_has_a_claim_in_every_teams_namespace(eks: Program) -> None:
    claims = {
        (claim.inputs["metadata"]["namespace"], claim.inputs["metadata"]["name"])
        for claim in eks.of_type(":PersistentVolumeClaim")
    }
    assert {claim for claim in claims if claim[0] != "trainyard-volumes"} == {
        (namespace, name) for namespace in ("research", "product") for name in ("home", "scratch")
    }


def test_a_namespaces_folder_on_efs_belongs_to_the_images_user_and_outlives_its_claim(eks: Program) -> None:
    classes = {made.inputs["metadata"]["name"]: made for made in eks.of_type(":StorageClass")}
    parameters = classes["efs-sc"].inputs["parameters"]
    assert parameters["fileSystemId"] == "fs-home"
    assert parameters["uid"] == parameters["gid"] == "1000"
    assert parameters["subPathPattern"] == "${.PVC.namespace}"
    assert parameters["ensureUniqueDirectory"] == "false"


def test_a_lustre_volume_binds_the_claim_of_its_namespace_and_no_other(eks: Program) -> None:
    for namespace in ("research", "product"):
        volume = eks[f"volumes-scratch-{namespace}-volume"].inputs
        claim = eks[f"volumes-scratch-{namespace}"].inputs
        assert volume["spec"]["claimRef"] == claim["metadata"] | {"namespace": namespace}
        assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
        assert claim["spec"]["storageClassName"] == volume["spec"]["storageClassName"] == ""
        assert volume["spec"]["csi"]["volumeAttributes"]["dnsname"] == "scratch.fsx.us-east-1.amazonaws.com"
        assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"


def test_volumes_of_one_file_system_have_handles_of_their_own(eks: Program) -> None:
    handles = [volume.inputs["spec"]["csi"]["volumeHandle"] for volume in eks.of_type(":PersistentVolume")]
    assert len(handles) == len(set(handles)) == 3


def test_a_lustre_file_system_is_handed_to_the_images_user_before_anyone_trains_on_it(eks: Program) -> None:
    (job,) = eks.of_type(":Job")
    assert job.inputs["metadata"]["namespace"] == "trainyard-volumes"
    assert eks["volumes-namespace"].inputs["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "baseline"
    pod = job.inputs["spec"]["template"]["spec"]
    assert pod["containers"][0]["command"] == ["chown", "1000:1000", "/volume"]
    assert pod["volumes"][0]["persistentVolumeClaim"] == {"claimName": "scratch"}
    assert "volumes-scratch-trainyard-volumes" in job.dependencies


def test_an_existing_cluster_keeps_its_own_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    program = run(on_existing(), monkeypatch)
    assert not program.of_type(":StorageClass", ":PersistentVolume", ":Job")
    assert program["volumes-home-product"].inputs["spec"]["storageClassName"] == "efs-sc"
    assert "storageClassName" not in program["volumes-scratch-product"].inputs["spec"]


@pytest.mark.parametrize("target", [on_eks, on_existing])
def test_every_object_is_one_that_kubernetes_takes(target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    program = run(target(), monkeypatch)
    objects = [
        resource
        for resource in program.resources
        if resource.type.startswith("kubernetes:") and not resource.type.endswith((":Release", ":ConfigGroup"))
    ]
    assert len(objects) > 10
    errors = {resource.name: validate_manifest(manifest(resource)) for resource in objects}
    assert {name: found for name, found in errors.items() if found} == {}
