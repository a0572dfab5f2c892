"""MPIJob v1 beside v2beta1: never by us, and never over what a cluster has already."""

from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from infra.config.platform import ExistingCluster
from infra.kubernetes import mpi_conflict
from infra.kubernetes.mpi_conflict import foreign_versions, migration, refuse_foreign_mpi_jobs
from tests.infra.lab_platform import SHARED, on_existing
from tests.schemas import crd

ROOT = Path(__file__).parents[3]


def definition(*, declared: tuple[str, ...], stored: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"spec": {"versions": [{"name": name} for name in declared]}, "status": {"storedVersions": list(stored)}}


@pytest.mark.parametrize(
    ("declared", "stored", "foreign"),
    [
        (("v2beta1",), ("v2beta1",), []),
        (("v1",), ("v1",), ["v1"]),
        # Served no longer, but the cluster may hold jobs of it, and refuses a definition without it.
        (("v2beta1",), ("v1", "v2beta1"), ["v1"]),
        (("v1alpha2", "v1"), ("v1",), ["v1", "v1alpha2"]),
    ],
)
def test_a_version_that_is_not_the_mpi_operators_is_found(
    declared: tuple[str, ...], stored: tuple[str, ...], foreign: list[str]
) -> None:
    assert foreign_versions(definition(declared=declared, stored=stored)) == foreign


def test_our_own_definition_is_none_of_them() -> None:
    assert foreign_versions(crd(ROOT / "infra/charts/mpi-operator/crds/kubeflow.org_mpijobs.yaml")) == []


def test_the_way_out_names_every_command() -> None:
    text = migration("local", ["v1"])
    for command in ("kubectl get mpijobs", "kubectl delete crd mpijobs.kubeflow.org", "pulumi up -s local"):
        assert command in text
    assert "{" not in text.replace("{enabled: false}", "")


def test_a_cluster_with_v1_is_refused_and_one_without_mpi_jobs_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = ExistingCluster(context="kind")
    monkeypatch.setattr(mpi_conflict, "_definition", lambda cluster: None)
    refuse_foreign_mpi_jobs("lab", cluster)
    monkeypatch.setattr(mpi_conflict, "_definition", lambda cluster: definition(declared=("v1",)))
    with pytest.raises(pulumi.RunError, match="pulumi up -s lab"):
        refuse_foreign_mpi_jobs("lab", cluster)


def test_the_training_operator_cannot_be_asked_for_mpi_jobs() -> None:
    with pytest.raises(ValueError, match="mpijob"):
        on_existing(operators=SHARED["operators"] | {"training": {"schemes": ["pytorchjob", "mpijob"]}})


def test_no_chart_and_no_manifest_of_ours_holds_an_mpi_job_of_v1() -> None:
    definitions = [path for path in (ROOT / "infra/charts").rglob("*.yaml") if "mpijobs" in path.name]
    assert [[version["name"] for version in crd(path)["spec"]["versions"]] for path in definitions] == [["v2beta1"]]
    manifests = [
        manifest
        for path in (ROOT / "tests/golden").glob("*.yaml")
        for manifest in yaml.safe_load_all(path.read_text())
        if manifest["kind"] == "MPIJob"
    ]
    assert manifests
    assert {manifest["apiVersion"] for manifest in manifests} == {"kubeflow.org/v2beta1"}
