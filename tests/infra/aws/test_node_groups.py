"""Node groups and their launch templates as they are registered."""

from typing import Any

import pytest

from infra.config.platform import EksPlatform
from infra.instances import INSTANCE_TYPES
from infra.nodes import GROUP_LABEL, nodes_of
from tests.infra.aws.recorder import Recording, changed, decoded, platform, record, recording

GROUP = "aws:eks/nodeGroup:NodeGroup"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
EFA_TYPES = [name for name, row in INSTANCE_TYPES.items() if row.num_efa]
SYSTEM = {"name": "system", "instance_type": "m5.xlarge", "min": 2, "max": 4}


@pytest.fixture(scope="module")
def prod() -> Recording:
    return recording("prod")


@pytest.fixture(scope="module")
def every_efa_type() -> Recording:
    """A group of each type that takes EFA."""
    groups = [
        {"name": name.replace(".", "-"), "instance_type": name, "max": 2, "efa": True, "zone": "us-east-1b"}
        for name in EFA_TYPES
    ]
    return record(with_groups(SYSTEM, *groups))


def with_groups(*groups: dict[str, Any]) -> EksPlatform:
    return changed(platform("prod"), node_groups=list(groups))


def template(found: Recording, group: str) -> dict[str, Any]:
    return found.named(f"prod-{group}-template", TEMPLATE).inputs


def test_groups_really_have_the_names_that_experiments_select(prod: Recording) -> None:
    names = {group.inputs["nodeGroupName"] for group in prod.of_type(GROUP)}
    assert names == {nodes.labels[GROUP_LABEL] for nodes in nodes_of(platform("prod")).values()}


def test_nodes_have_the_taints_that_pods_are_made_to_tolerate(prod: Recording) -> None:
    nodes = nodes_of(platform("prod"))
    for group in prod.of_type(GROUP):
        tainted = {(taint["key"], taint["effect"]) for taint in group.inputs["taints"]}
        expected = {(taint.key, "NO_SCHEDULE") for taint in nodes[group.inputs["nodeGroupName"]].taints}
        assert tainted == expected


@pytest.mark.parametrize("name", EFA_TYPES)
def test_a_type_gets_as_many_efa_interfaces_as_the_instance_table_says(every_efa_type: Recording, name: str) -> None:
    interfaces = template(every_efa_type, name.replace(".", "-"))["networkInterfaces"]
    efa = [interface for interface in interfaces if interface["interfaceType"] == "efa-only"]
    assert len(efa) == INSTANCE_TYPES[name].num_efa
    assert all(interface["securityGroups"] == ["id-prod-efa"] for interface in efa)


@pytest.mark.parametrize("name", EFA_TYPES)
def test_efa_nodes_stand_together_in_one_zone(every_efa_type: Recording, name: str) -> None:
    group = every_efa_type.named(f"prod-{name.replace('.', '-')}", GROUP)
    assert group.inputs["subnetIds"] == ["id-prod-private-us-east-1b"]
    placement = template(every_efa_type, name.replace(".", "-"))["placement"]["groupName"]
    assert every_efa_type.named(placement, "aws:ec2/placementGroup:PlacementGroup").inputs["strategy"] == "cluster"


def test_no_launch_template_names_a_subnet_or_an_image(prod: Recording) -> None:
    for found in prod.of_type(TEMPLATE):
        assert "imageId" not in found.inputs
        assert not any("subnetId" in interface for interface in found.inputs.get("networkInterfaces", []))


def test_every_node_is_in_the_clusters_security_group(prod: Recording) -> None:
    for found in prod.of_type(TEMPLATE):
        primary = found.inputs.get("networkInterfaces", [{}])[0].get("securityGroups")
        assert (primary or found.inputs["vpcSecurityGroupIds"]) == ["sg-cluster"], found.name
        assert not ("networkInterfaces" in found.inputs and "vpcSecurityGroupIds" in found.inputs)


def test_pods_cannot_reach_the_nodes_credentials(prod: Recording) -> None:
    for found in prod.of_type(TEMPLATE):
        assert found.inputs["metadataOptions"]["httpTokens"] == "required"
        assert found.inputs["metadataOptions"]["httpPutResponseHopLimit"] == 1


def test_root_disks_are_encrypted_and_as_large_as_asked_for(prod: Recording) -> None:
    for group in platform("prod").node_groups:
        (disk,) = template(prod, group.name)["blockDeviceMappings"]
        assert disk["ebs"]["encrypted"] == "true"
        assert disk["ebs"]["volumeType"] == "gp3"
        assert disk["ebs"]["volumeSize"] == group.disk_gib


def test_each_accelerator_gets_the_image_with_its_driver(prod: Recording) -> None:
    images = {group.inputs["nodeGroupName"]: group.inputs["amiType"] for group in prod.of_type(GROUP)}
    assert images["system"] == images["cpu"] == "AL2023_x86_64_STANDARD"
    assert images["gpu-h100"] == images["gpu-spot"] == "AL2023_x86_64_NVIDIA"
    assert images["trainium"] == "AL2023_x86_64_NEURON"


def test_a_capacity_block_is_named_wherever_eks_looks_for_it(prod: Recording) -> None:
    found = template(prod, "gpu-h100")
    assert found["instanceType"] == "p5.48xlarge"
    assert found["instanceMarketOptions"] == {"marketType": "capacity-block"}
    target = found["capacityReservationSpecification"]["capacityReservationTarget"]
    assert target == {"capacityReservationId": "cr-0123456789abcdef0"}
    assert "placement" not in found
    assert prod.named("prod-gpu-h100", GROUP).inputs["capacityType"] == "CAPACITY_BLOCK"


def test_a_reservation_is_used_on_demand() -> None:
    reserved = {"name": "gpu", "instance_type": "g5.12xlarge", "max": 1, "zone": "us-east-1a"}
    found = record(with_groups(SYSTEM, {**reserved, "capacity": {"reservation": "cr-0123456789abcdef0"}}))
    assert "capacityReservationSpecification" in template(found, "gpu")
    assert "instanceMarketOptions" not in template(found, "gpu")
    assert found.named("prod-gpu", GROUP).inputs["capacityType"] == "ON_DEMAND"


def test_spot_is_the_node_groups_own_setting(prod: Recording) -> None:
    assert prod.named("prod-gpu-spot", GROUP).inputs["capacityType"] == "SPOT"
    assert "instanceMarketOptions" not in template(prod, "gpu-spot")


def test_local_disks_are_configured_in_the_launch_template(prod: Recording) -> None:
    assert "RAID0" in decoded(template(prod, "trainium")["userData"])
    assert "userData" not in template(prod, "system")


def test_an_autoscalers_choice_of_size_is_left_alone(prod: Recording) -> None:
    for group in prod.of_type(GROUP):
        assert group.ignored == ["scalingConfig.desiredSize"]


def test_broken_nodes_are_replaced(prod: Recording) -> None:
    assert all(group.inputs["nodeRepairConfig"] == {"enabled": True} for group in prod.of_type(GROUP))


def test_nodes_may_register_and_pull_images_and_nothing_else(prod: Recording) -> None:
    attached = [
        found.inputs["policyArn"].rpartition("/")[2]
        for found in prod.of_type("aws:iam/rolePolicyAttachment:RolePolicyAttachment")
        if found.inputs["role"] == "prod-node"
    ]
    assert sorted(attached) == ["AmazonEC2ContainerRegistryPullOnly", "AmazonEKSWorkerNodePolicy"]


def test_nodes_wait_for_the_addons_without_which_they_are_never_ready(prod: Recording) -> None:
    waited_for = {urn.rpartition("::")[2] for urn in prod.named("prod-system", GROUP).depends_on}
    assert {"prod-node-vpc-cni", "prod-node-kube-proxy", "prod-node-eks-pod-identity-agent"} <= waited_for
