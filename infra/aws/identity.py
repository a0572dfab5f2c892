"""IAM: the account, policies as plain statements, and roles that one service or one pod may assume."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

POD_IDENTITY = "pods.eks.amazonaws.com"

Statement = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Account:
    """Where the stack deploys to."""

    id: pulumi.Output[str]
    partition: pulumi.Output[str]
    region: str

    def aws_policy(self, name: str) -> pulumi.Output[str]:
        """The ARN of a policy that AWS manages."""
        return pulumi.Output.concat("arn:", self.partition, ":iam::aws:policy/", name)


def current_account(region: str) -> Account:
    return Account(
        id=aws.get_caller_identity_output().account_id,
        partition=aws.get_partition_output().partition,
        region=region,
    )


def policy_document(*statements: Statement) -> pulumi.Output[str]:
    return pulumi.Output.json_dumps({"Version": "2012-10-17", "Statement": list(statements)})


def role_arn(
    name: str,
    service: str,
    *,
    managed_policies: Sequence[pulumi.Input[str]] = (),
    statements: Sequence[Statement] = (),
    parent: pulumi.Resource,
) -> pulumi.Output[str]:
    """A role that a service of AWS assumes, with AWS's policies, statements of our own, or both.

    The ARN is known once the policies are attached, so that nothing starts with a role that may not do anything yet.
    """
    # Pod Identity passes the pod's namespace and service account on as session tags, which takes a permission too.
    actions = ["sts:AssumeRole", "sts:TagSession"] if service == POD_IDENTITY else ["sts:AssumeRole"]
    trust = {"Effect": "Allow", "Principal": {"Service": service}, "Action": actions}
    opts = pulumi.ResourceOptions(parent=parent)
    role = aws.iam.Role(name, assume_role_policy=policy_document(trust), opts=opts)
    policies: list[pulumi.CustomResource] = [
        aws.iam.RolePolicyAttachment(f"{name}-{index}", role=role.name, policy_arn=arn, opts=opts)
        for index, arn in enumerate(managed_policies)
    ]
    if statements:
        document = policy_document(*statements)
        policies.append(aws.iam.RolePolicy(f"{name}-policy", role=role.name, policy=document, opts=opts))
    return pulumi.Output.all(role.arn, *(policy.id for policy in policies)).apply(lambda known: str(known[0]))


def pod_role(
    name: str,
    *,
    cluster_name: str,
    namespace: str,
    service_account: str,
    managed_policies: Sequence[pulumi.Input[str]] = (),
    statements: Sequence[Statement] = (),
    parent: pulumi.Resource,
    depends_on: Sequence[pulumi.Resource],
) -> aws.eks.PodIdentityAssociation:
    """Lets the pods of one service account, and no others, act as a role of their own."""
    return aws.eks.PodIdentityAssociation(
        f"{name}-association",
        cluster_name=cluster_name,
        namespace=namespace,
        service_account=service_account,
        role_arn=role_arn(name, POD_IDENTITY, managed_policies=managed_policies, statements=statements, parent=parent),
        opts=pulumi.ResourceOptions(parent=parent, depends_on=list(depends_on)),
    )
