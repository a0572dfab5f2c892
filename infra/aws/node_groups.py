"""EKS managed node groups, one for each entry of the stack file, under exactly its name."""

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from infra.aws.control_plane import ControlPlane
from infra.aws.identity import Account, role_arn
from infra.aws.launch_templates import launch_template
from infra.aws.network import Network
from infra.aws.placement import zones_of
from infra.config.nodes import CapacityBlock, NodeGroup, Taint
from infra.config.platform import EksPlatform
from infra.instances import INSTANCE_TYPES
from infra.nodes import accelerator_taints

# EKS's AMI types; the accelerated ones bring driver, container toolkit and EFA's kernel module.
_AMI_TYPES = {None: "AL2023_x86_64_STANDARD", "gpu": "AL2023_x86_64_NVIDIA", "neuron": "AL2023_x86_64_NEURON"}
_TAINT_EFFECTS = {
    "NoSchedule": "NO_SCHEDULE",
    "PreferNoSchedule": "PREFER_NO_SCHEDULE",
    "NoExecute": "NO_EXECUTE",
}
# The CNI's permissions are the CNI's own (infra/aws/addons.py), so a node may do no more than register and pull.
_NODE_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly")


class NodeGroups(pulumi.ComponentResource):
    def __init__(
        self,
        name: str,
        cluster_name: str,
        config: EksPlatform,
        network: Network,
        control_plane: ControlPlane,
        account: Account,
        depends_on: Sequence[pulumi.Resource],
    ) -> None:
        """`depends_on`: the add-ons without which a node never becomes ready."""
        super().__init__("trainyard:aws:NodeGroups", name)
        node_role = role_arn(
            f"{name}-node",
            "ec2.amazonaws.com",
            managed_policies=[account.aws_policy(policy) for policy in _NODE_POLICIES],
            parent=self,
        )
        self.groups: dict[str, aws.eks.NodeGroup] = {}
        for group in config.node_groups:
            template = launch_template(
                f"{name}-{group.name}",
                group,
                cluster_security_group_id=control_plane.security_group_id,
                efa_security_group_id=network.efa_security_group_id,
                parent=self,
            )
            self.groups[group.name] = aws.eks.NodeGroup(
                f"{name}-{group.name}",
                cluster_name=cluster_name,
                # EKS labels nodes with this name, and experiments select their nodes by that label.
                node_group_name=group.name,
                version=config.cluster.kubernetes_version,
                ami_type=_ami_type(group),
                capacity_type=_capacity_type(group),
                node_role_arn=node_role,
                subnet_ids=[network.private_subnet_ids[zone] for zone in zones_of(group, config.network)],
                launch_template=aws.eks.NodeGroupLaunchTemplateArgs(
                    id=template.id, version=template.latest_version.apply(str)
                ),
                scaling_config=aws.eks.NodeGroupScalingConfigArgs(
                    min_size=group.min, max_size=group.max, desired_size=group.min
                ),
                update_config=aws.eks.NodeGroupUpdateConfigArgs(max_unavailable=1),
                # Replaces nodes whose GPU, Neuron device or EFA interface the monitoring agent reports as broken.
                node_repair_config=aws.eks.NodeGroupNodeRepairConfigArgs(enabled=True),
                labels=group.labels,
                taints=_taints(group),
                # The size of the moment is an autoscaler's or an operator's business.
                opts=pulumi.ResourceOptions(
                    parent=self,
                    depends_on=[control_plane.eks, *depends_on],
                    ignore_changes=["scalingConfig.desiredSize"],
                ),
            )
        self.register_outputs({"names": list(self.groups)})


def _ami_type(group: NodeGroup) -> str:
    accelerator = INSTANCE_TYPES[group.instance_type].accelerator
    return _AMI_TYPES[accelerator.kind if accelerator else None]


def _capacity_type(group: NodeGroup) -> str:
    if isinstance(group.capacity, CapacityBlock):
        return "CAPACITY_BLOCK"
    return "SPOT" if group.capacity == "spot" else "ON_DEMAND"


def _taints(group: NodeGroup) -> list[aws.eks.NodeGroupTaintArgs]:
    taints: list[Taint] = [*accelerator_taints(INSTANCE_TYPES[group.instance_type]), *group.taints]
    return [
        aws.eks.NodeGroupTaintArgs(key=taint.key, value=taint.value or None, effect=_TAINT_EFFECTS[taint.effect])
        for taint in taints
    ]
