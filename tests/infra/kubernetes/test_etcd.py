"""The platform's etcd: its chart, rendered by Helm as the platform installs it."""

import subprocess
from typing import Any

import pytest
import yaml

from infra.addresses import ETCD as ADDRESS
from infra.config.platform import Etcd, Mirrors
from infra.kubernetes.etcd import etcd_values
from infra.versions import ETCD
from tests.commands import needs
from tests.infra.kubernetes.test_charts import CHARTS, assert_restricted
from tests.infra.lab_platform import on_eks, on_existing
from tests.infra.recorded_platform import run
from tests.schemas import validate_manifest

needs_helm = needs("helm")

Objects = dict[tuple[str, str], dict[str, Any]]


def rendered(members: int, storage_class: str | None = None) -> Objects:
    """The chart's objects by kind and name."""
    config = Etcd.model_validate({"enabled": True, "members": members})
    values = yaml.safe_dump(etcd_values(config, storage_class=storage_class, mirrors=Mirrors()))
    command = ["helm", "template", "etcd", str(CHARTS / "etcd"), "--namespace", "etcd", "--values", "-"]
    text = subprocess.run(command, input=values, check=True, capture_output=True, text=True).stdout
    manifests = [manifest for manifest in yaml.safe_load_all(text) if manifest]
    return {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in manifests}


def members_of(objects: Objects) -> dict[str, Any]:
    spec: dict[str, Any] = objects["StatefulSet", "etcd"]["spec"]
    return spec


def options_of(objects: Objects) -> dict[str, str]:
    """etcd's flags."""
    (container,) = members_of(objects)["template"]["spec"]["containers"]
    return dict(flag.removeprefix("--").partition("=")[::2] for flag in container["command"][1:])


@needs_helm
@pytest.mark.parametrize("members", [1, 3, 5])
def test_the_chart_renders_objects_that_kubernetes_takes(members: int) -> None:
    objects = rendered(members)
    assert len(objects) == 5
    for manifest in objects.values():
        assert validate_manifest(manifest) == []


@needs_helm
def test_its_pod_passes_the_restricted_level_of_its_namespace() -> None:
    pod = members_of(rendered(1))["template"]["spec"]
    assert_restricted(pod["securityContext"] | pod["containers"][0]["securityContext"])


@needs_helm
def test_it_answers_at_the_address_that_experiments_are_told() -> None:
    objects = rendered(3)
    name, namespace, rest = ADDRESS.split(".", 2)
    service = objects["Service", name]
    assert service["metadata"]["namespace"] == namespace
    assert rest == f"svc:{service['spec']['ports'][0]['port']}"
    assert "enable-v2" in options_of(objects)  # torchrun knows no other API


@needs_helm
def test_members_know_each_other_by_names_that_resolve_before_they_are_ready() -> None:
    objects = rendered(3)
    peers = dict(peer.split("=") for peer in options_of(objects)["initial-cluster"].split(","))
    assert list(peers) == ["etcd-0", "etcd-1", "etcd-2"]
    assert peers["etcd-2"] == options_of(objects)["initial-advertise-peer-urls"].replace("$(POD_NAME)", "etcd-2")
    service = members_of(objects)["serviceName"]
    assert peers["etcd-2"] == f"http://etcd-2.{service}.etcd.svc:2380"
    assert objects["Service", service]["spec"]["publishNotReadyAddresses"] is True
    assert members_of(objects)["podManagementPolicy"] == "Parallel"


@needs_helm
def test_several_members_keep_their_data_and_one_does_not() -> None:
    several, one = members_of(rendered(3, "gp3")), members_of(rendered(1))
    (claim,) = several["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == "gp3"
    assert several["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == "Delete"
    assert "volumes" not in several["template"]["spec"]
    assert one["template"]["spec"]["volumes"] == [{"name": "data", "emptyDir": {}}]
    assert "volumeClaimTemplates" not in one
    (default,) = members_of(rendered(3))["volumeClaimTemplates"]
    assert "storageClassName" not in default["spec"]


@needs_helm
def test_only_pods_of_teams_may_write_to_it() -> None:
    clients, peers = rendered(3)["NetworkPolicy", "etcd"]["spec"]["ingress"]
    assert clients["from"] == [
        {"namespaceSelector": {"matchLabels": {"app.kubernetes.io/managed-by": "trainyard"}}},
    ]
    assert clients["ports"] == [{"port": "client"}]
    assert peers["ports"] == [{"port": "peer"}]


def test_chart_and_image_are_of_the_version_that_the_platform_pins() -> None:
    assert yaml.safe_load((CHARTS / "etcd" / "Chart.yaml").read_text())["appVersion"] == ETCD
    assert etcd_values(Etcd(), storage_class=None, mirrors=Mirrors(images={"quay.io": "hub"}))["image"] == (
        f"hub/coreos/etcd:{ETCD}"
    )


def test_on_eks_its_volumes_are_of_a_class_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    program = run(on_eks(), monkeypatch)
    storage_class = program["etcd-storage-class"].inputs
    assert storage_class["provisioner"] == "ebs.csi.aws.com"
    release = program["etcd-release"]
    assert release.inputs["values"]["volume"]["storageClassName"] == storage_class["metadata"]["name"]
    assert {"etcd-storage-class", "etcd-namespace"} <= release.dependencies


def test_a_cluster_that_is_there_already_has_a_class_or_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    program = run(on_existing(), monkeypatch)
    assert not program.of_type(":StorageClass")
    namespaces = [namespace.inputs["metadata"] for namespace in program.of_type(":Namespace")]
    teams = program["teams-product"].inputs["metadata"]["labels"]
    assert program["etcd-release"].inputs["values"]["clientNamespaces"].items() <= teams.items()
    assert "etcd" in {metadata["name"] for metadata in namespaces}
