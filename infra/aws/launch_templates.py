"""The launch template of a node group: what its machines are, before they are Kubernetes nodes.

Every group has one of its own, so that disks, metadata and network are set in one place for CPU, GPU, EFA and Trainium
alike, and EKS chooses the newest image of the group's AMI type.
"""

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from infra.aws.network_cards import efa_interfaces
from infra.aws.placement import needs_placement_group
from infra.aws.user_data import user_data
from infra.config.nodes import CapacityBlock, CapacityReservation, NodeGroup
from infra.instances import INSTANCE_TYPES


def launch_template(
    name: str,
    group: NodeGroup,
    *,
    cluster_security_group_id: pulumi.Input[str],
    efa_security_group_id: pulumi.Input[str],
    parent: pulumi.Resource,
) -> aws.ec2.LaunchTemplate:
    opts = pulumi.ResourceOptions(parent=parent)
    return aws.ec2.LaunchTemplate(
        f"{name}-template",
        instance_type=group.instance_type,
        metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(
            http_endpoint="enabled",
            http_tokens="required",
            # One hop ends at the node: pods cannot take the node's role, they have roles of their own.
            http_put_response_hop_limit=1,
        ),
        block_device_mappings=[_root_disk(group)],
        tag_specifications=[
            aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags={"Name": name})
            for kind in ("instance", "volume")
        ],
        user_data=user_data(group),
        **_network(group, cluster_security_group_id, efa_security_group_id),
        **_placement(name, group, opts),
        **_capacity(group),
        opts=opts,
    )


def _root_disk(group: NodeGroup) -> aws.ec2.LaunchTemplateBlockDeviceMappingArgs:
    return aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
        device_name="/dev/xvda",  # the root of AL2023 images
        ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
            volume_size=group.disk_gib,
            volume_type="gp3",
            # With the account's own EBS key: one of ours would have to admit Auto Scaling's service role by grant.
            encrypted="true",
            delete_on_termination="true",
        ),
    )


def _network(
    group: NodeGroup, cluster_security_group_id: pulumi.Input[str], efa_security_group_id: pulumi.Input[str]
) -> dict[str, Any]:
    """No subnet stands here: EKS takes it from the node group, and refuses a template that has one."""
    if not group.efa:
        return {"vpc_security_group_ids": [cluster_security_group_id]}
    groups: dict[str, Sequence[pulumi.Input[str]]] = {
        "interface": [cluster_security_group_id],
        "efa-only": [efa_security_group_id],
    }
    return {
        "network_interfaces": [
            aws.ec2.LaunchTemplateNetworkInterfaceArgs(
                network_card_index=interface.card,
                device_index=interface.device,
                interface_type=interface.kind,
                security_groups=groups[interface.kind],
                delete_on_termination="true",
            )
            for interface in efa_interfaces(INSTANCE_TYPES[group.instance_type].num_efa)
        ]
    }


def _placement(name: str, group: NodeGroup, opts: pulumi.ResourceOptions) -> dict[str, Any]:
    if not needs_placement_group(group):
        return {}
    placement_group = aws.ec2.PlacementGroup(f"{name}-placement", strategy="cluster", opts=opts)
    return {"placement": aws.ec2.LaunchTemplatePlacementArgs(group_name=placement_group.name)}


def _capacity(group: NodeGroup) -> dict[str, Any]:
    """Spot is the node group's own setting; reserved capacity is named here (EKS user guide, "Capacity Blocks")."""
    match group.capacity:
        case CapacityBlock(block=reservation):
            market = aws.ec2.LaunchTemplateInstanceMarketOptionsArgs(market_type="capacity-block")
            return {"instance_market_options": market, **_reservation(reservation)}
        case CapacityReservation(reservation=reservation):
            return _reservation(reservation)
        case _:
            return {}


def _reservation(reservation: str) -> dict[str, Any]:
    target = aws.ec2.LaunchTemplateCapacityReservationSpecificationCapacityReservationTargetArgs(
        capacity_reservation_id=reservation
    )
    return {
        "capacity_reservation_specification": aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs(
            capacity_reservation_target=target
        )
    }
