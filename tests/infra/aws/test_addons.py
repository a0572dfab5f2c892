"""EKS add-ons as they are registered."""

import json

import pytest

from tests.infra.aws.recorder import Recording, changed, platform, record, recording, statements

ADDON = "aws:eks/addon:Addon"
ASSOCIATION = "aws:eks/podIdentityAssociation:PodIdentityAssociation"


@pytest.fixture(scope="module")
def prod() -> Recording:
    return recording("prod")


def names(found: Recording) -> set[str]:
    return {addon.inputs["addonName"] for addon in found.of_type(ADDON)}


def test_storage_drivers_come_with_their_storage(prod: Recording) -> None:
    assert {"aws-efs-csi-driver", "aws-fsx-csi-driver"} <= names(prod)
    bare = record(changed(platform("prod"), storage={}))
    assert names(prod) - names(bare) == {"aws-efs-csi-driver", "aws-fsx-csi-driver"}


def test_the_network_addon_enforces_policies_and_hands_out_prefixes(prod: Recording) -> None:
    values = json.loads(prod.named("prod-node-vpc-cni", ADDON).inputs["configurationValues"])
    assert values["enableNetworkPolicy"] == "true"
    assert values["env"]["ENABLE_PREFIX_DELEGATION"] == "true"


def test_every_addon_that_calls_aws_has_a_role_for_its_own_service_account(prod: Recording) -> None:
    accounts = {
        found.inputs["serviceAccount"]: found.inputs["roleArn"]
        for found in prod.of_type(ASSOCIATION)
        if found.inputs["namespace"] == "kube-system"
    }
    assert set(accounts) == {"aws-node", "ebs-csi-controller-sa", "efs-csi-controller-sa", "fsx-csi-controller-sa"}
    assert len(set(accounts.values())) == len(accounts)


def test_an_addons_pods_start_with_their_role(prod: Recording) -> None:
    for association in prod.of_type(ASSOCIATION):
        addon_name = association.name.removesuffix("-association")
        for addon in prod.of_type(ADDON):
            if addon.name == addon_name:
                assert any(urn.endswith(f"::{association.name}") for urn in addon.depends_on), addon_name


def test_only_pod_identity_may_assume_the_pods_roles(prod: Recording) -> None:
    roles = {found.name: found for found in prod.of_type("aws:iam/role:Role")}
    for association in prod.of_type(ASSOCIATION):
        role = roles[association.name.removesuffix("-association")]
        (trust,) = statements(role.inputs["assumeRolePolicy"])
        assert trust["Principal"] == {"Service": "pods.eks.amazonaws.com"}
        assert sorted(trust["Action"]) == ["sts:AssumeRole", "sts:TagSession"]


def test_the_lustre_driver_may_look_and_not_touch(prod: Recording) -> None:
    policy = prod.named("prod-cluster-aws-fsx-csi-driver-policy", "aws:iam/rolePolicy:RolePolicy").inputs["policy"]
    assert [statement["Action"] for statement in statements(policy)] == ["fsx:DescribeFileSystems"]


def test_controllers_wait_for_nodes_to_run_on(prod: Recording) -> None:
    waited_for = {urn.rpartition("::")[2] for urn in prod.named("prod-cluster-coredns", ADDON).depends_on}
    assert "prod-system" in waited_for
