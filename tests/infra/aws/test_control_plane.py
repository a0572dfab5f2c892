"""The EKS control plane as it is registered."""

import pytest

from tests.infra.aws.recorder import Recording, changed, platform, record, recording, statements


@pytest.fixture(scope="module")
def prod() -> Recording:
    return recording("prod")


def eks_inputs(found: Recording) -> dict:
    (cluster,) = found.of_type("eks:index:Cluster")
    return cluster.inputs


def test_the_api_server_is_private_unless_ranges_are_named(prod: Recording) -> None:
    inputs = eks_inputs(prod)
    assert inputs["endpointPrivateAccess"] is True
    assert inputs["endpointPublicAccess"] is False
    assert "publicAccessCidrs" not in inputs


def test_named_ranges_and_no_others_reach_the_api_server() -> None:
    inputs = eks_inputs(recording("dev"))
    assert inputs["endpointPublicAccess"] is True
    assert inputs["publicAccessCidrs"] == platform("dev").cluster.public_access_cidrs


def test_secrets_are_encrypted_with_a_key_that_rotates(prod: Recording) -> None:
    (key,) = prod.of_type("aws:kms/key:Key")
    assert key.inputs["enableKeyRotation"] is True
    assert eks_inputs(prod)["encryptionConfigKeyArn"] == "arn:prod-key"


def test_every_control_plane_log_is_kept_encrypted_for_a_year(prod: Recording) -> None:
    inputs = eks_inputs(prod)
    assert sorted(inputs["enabledClusterLogTypes"]) == [
        "api",
        "audit",
        "authenticator",
        "controllerManager",
        "scheduler",
    ]
    group = prod.named("prod-logs", "aws:cloudwatch/logGroup:LogGroup").inputs
    assert group["name"] == f"/aws/eks/{inputs['name']}/cluster"
    assert group["kmsKeyId"] == "arn:prod-key"
    assert group["retentionInDays"] >= 365


def test_only_access_entries_let_anybody_in(prod: Recording) -> None:
    inputs = eks_inputs(prod)
    assert inputs["authenticationMode"] == "API"
    (entry,) = inputs["accessEntries"].values()
    assert entry["principalArn"] == "arn:aws:iam::123456789012:role/platform-admin"
    (policy,) = entry["accessPolicies"].values()
    assert policy["policyArn"].endswith("AmazonEKSClusterAdminPolicy")
    assert policy["accessScope"] == {"type": "cluster"}


def test_deletion_protection_is_the_stack_files_decision(prod: Recording) -> None:
    assert eks_inputs(prod)["deletionProtection"] is True
    assert eks_inputs(recording("dev"))["deletionProtection"] is False


def test_the_component_brings_neither_nodes_nor_addons_of_its_own(prod: Recording) -> None:
    inputs = eks_inputs(prod)
    assert inputs["skipDefaultNodeGroup"] is True
    assert inputs["bootstrapSelfManagedAddons"] is False
    assert inputs["useDefaultVpcCni"] is True
    assert inputs["kubeProxyAddonOptions"]["enabled"] is False
    assert inputs["corednsAddonOptions"]["enabled"] is False


def test_fsx_may_use_the_key_only_where_a_file_system_is_linked_to_s3() -> None:
    def principals(found: Recording) -> list:
        (key,) = found.of_type("aws:kms/key:Key")
        return [statement["Principal"] for statement in statements(key.inputs["policy"])]

    assert {"AWS": "*"} in principals(recording("prod"))
    assert {"AWS": "*"} not in principals(recording("dev"))
    (key,) = recording("prod").of_type("aws:kms/key:Key")
    (open_to_roles,) = [one for one in statements(key.inputs["policy"]) if one["Principal"] == {"AWS": "*"}]
    assert open_to_roles["Condition"]["StringEquals"] == {"aws:PrincipalAccount": "123456789012"}
    assert ":role/aws-service-role/" in open_to_roles["Condition"]["ArnLike"]["aws:PrincipalArn"]


def test_removing_an_admin_leaves_the_other_entries_alone() -> None:
    arns = [f"arn:aws:iam::123456789012:role/{name}" for name in ("first", "second")]
    both = eks_inputs(record(changed(platform("prod"), cluster__admins=arns)))["accessEntries"]
    one = eks_inputs(record(changed(platform("prod"), cluster__admins=arns[1:])))["accessEntries"]
    assert one.items() <= both.items()
