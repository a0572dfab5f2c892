"""Security groups, written as who may reach whom."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

_RULES = {"ingress": aws.vpc.SecurityGroupIngressRule, "egress": aws.vpc.SecurityGroupEgressRule}


@dataclass(frozen=True)
class Ports:
    """A range of TCP ports."""

    first: int
    last: int


def security_group(
    name: str, *, vpc_id: pulumi.Input[str], description: str, parent: pulumi.Resource
) -> aws.ec2.SecurityGroup:
    """A group that lets nothing in or out until a rule says so."""
    return aws.ec2.SecurityGroup(
        name,
        vpc_id=vpc_id,
        description=description,
        revoke_rules_on_delete=True,
        tags={"Name": name},
        opts=pulumi.ResourceOptions(parent=parent),
    )


def allow_all_within(name: str, group: aws.ec2.SecurityGroup, *, description: str, parent: pulumi.Resource) -> None:
    """All traffic between members of the group, in both directions."""
    opts = pulumi.ResourceOptions(parent=parent)
    for direction, rule in _RULES.items():
        rule(
            f"{name}-{direction}",
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            ip_protocol="-1",
            description=description,
            opts=opts,
        )


def allow(
    name: str,
    *,
    source: pulumi.Input[str],
    target: pulumi.Input[str],
    ports: Sequence[Ports],
    description: str,
    parent: pulumi.Resource,
) -> None:
    """TCP from one security group into another."""
    for range_ in ports:
        aws.vpc.SecurityGroupIngressRule(
            f"{name}-{range_.first}",
            security_group_id=target,
            referenced_security_group_id=source,
            ip_protocol="tcp",
            from_port=range_.first,
            to_port=range_.last,
            description=description,
            opts=pulumi.ResourceOptions(parent=parent),
        )
