"""The whole AWS half: how its parts hang together."""

import pytest

from tests.infra.aws.recorder import Recording, changed, platform, record, recording


@pytest.fixture(scope="module")
def prod() -> Recording:
    return recording("prod")


@pytest.mark.parametrize("stack", ["dev", "prod"])
def test_every_resource_is_a_child_of_a_component_of_ours(stack: str) -> None:
    for found in recording(stack).resources:
        parent_type = found.parent.split("::")[2].rpartition("$")[2]
        if found.type.startswith("trainyard:aws:"):
            assert parent_type == "pulumi:pulumi:Stack", found.name
        else:
            assert parent_type.startswith("trainyard:aws:"), found.name


@pytest.mark.parametrize("stack", ["dev", "prod"])
def test_every_resource_has_a_name_that_starts_with_the_stacks(stack: str) -> None:
    for found in recording(stack).resources:
        assert found.name == stack or found.name.startswith(f"{stack}-"), found.name


def test_nothing_is_created_inside_apply(prod: Recording) -> None:
    """Before the first `up` no output is known, so what an apply creates would be missing from that preview."""
    preview = record(platform("prod"), knows_outputs=False)
    assert {(found.type, found.name) for found in preview.resources} == {
        (found.type, found.name) for found in prod.resources
    }


def test_the_kubernetes_provider_is_explicit_and_outlives_a_new_kubeconfig(prod: Recording) -> None:
    (provider,) = prod.of_type("pulumi:providers:kubernetes")
    assert provider.inputs["clusterIdentifier"] == "oidc.eks.amazonaws.com/id/1"
    assert provider.inputs["kubeconfig"] == "{}"


def test_kubernetes_objects_wait_for_nodes_and_addons(prod: Recording) -> None:
    kinds = {type(resource).__name__ for resource in prod.cluster.ready}
    assert kinds == {"NodeGroup", "Addon"}


def test_what_the_kubernetes_half_mounts_is_handed_over_by_name(prod: Recording) -> None:
    storage = platform("prod").storage
    assert list(prod.cluster.efs_ids) == [volume.name for volume in storage.efs]
    assert list(prod.cluster.fsx) == [volume.name for volume in storage.fsx]
    assert list(prod.cluster.buckets) == [bucket.name for bucket in storage.buckets]


def test_a_platform_without_storage_makes_none() -> None:
    bare = record(changed(platform("prod"), storage={}))
    assert not any(found.type.startswith(("aws:efs", "aws:fsx", "aws:s3")) for found in bare.resources)
