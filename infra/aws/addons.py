"""EKS add-ons: the parts of Kubernetes that AWS keeps, each with a role of its own where it calls AWS.

Their versions are those that EKS picks for the cluster's Kubernetes version: it tests them together, and they move
when that version does.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_aws as aws

from infra.aws.identity import Account, Statement, pod_role
from infra.config.storage import Storage


@dataclass(frozen=True, kw_only=True)
class AddonAccess:
    """What the pods of a service account may do: a policy that AWS manages, or statements of ours."""

    service_account: str
    managed_policy: str | None = None
    statements: Sequence[Statement] = ()


@dataclass(frozen=True, kw_only=True)
class AddonSpec:
    name: str
    access: AddonAccess | None = None
    configuration: dict[str, Any] = field(default_factory=dict)


# A node without these three is never ready, so they come before the first one; each is a DaemonSet and waits for none.
NODE_ADDONS = (
    AddonSpec(name="eks-pod-identity-agent"),
    AddonSpec(name="kube-proxy"),
    AddonSpec(
        name="vpc-cni",
        access=AddonAccess(service_account="aws-node", managed_policy="AmazonEKS_CNI_Policy"),
        configuration={
            # Addresses come in blocks of 16 per request instead of one by one: starts of large gangs are not throttled.
            "env": {"ENABLE_PREFIX_DELEGATION": "true", "WARM_PREFIX_TARGET": "1"},
            "enableNetworkPolicy": "true",
        },
    ),
)


def cluster_addons(storage: Storage) -> list[AddonSpec]:
    """The add-ons whose controllers need nodes; storage drivers come where there is such storage."""
    addons = [
        AddonSpec(name="coredns"),
        AddonSpec(name="eks-node-monitoring-agent"),
        AddonSpec(
            name="aws-ebs-csi-driver",
            access=AddonAccess(
                service_account="ebs-csi-controller-sa", managed_policy="service-role/AmazonEBSCSIDriverPolicy"
            ),
        ),
    ]
    if storage.efs:
        access = AddonAccess(
            service_account="efs-csi-controller-sa", managed_policy="service-role/AmazonEFSCSIDriverPolicy"
        )
        addons.append(AddonSpec(name="aws-efs-csi-driver", access=access))
    if storage.fsx:
        # The file systems are made here, not by claims, so the driver has nothing to create; AWS's own policy for it
        # is AmazonFSxFullAccess.
        describe = {"Effect": "Allow", "Action": "fsx:DescribeFileSystems", "Resource": "*"}
        access = AddonAccess(service_account="fsx-csi-controller-sa", statements=[describe])
        addons.append(AddonSpec(name="aws-fsx-csi-driver", access=access))
    return addons


class Addons(pulumi.ComponentResource):
    def __init__(
        self,
        name: str,
        cluster_name: str,
        addons: Sequence[AddonSpec],
        account: Account,
        depends_on: Sequence[pulumi.Resource],
    ) -> None:
        super().__init__("trainyard:aws:Addons", name)
        self._prefix = name
        self._cluster_name = cluster_name
        self._account = account
        self._depends_on = list(depends_on)
        self.addons: list[pulumi.Resource] = [self._create_addon(addon) for addon in addons]
        self.register_outputs({"names": [addon.name for addon in addons]})

    def _create_addon(self, addon: AddonSpec) -> aws.eks.Addon:
        # The role must be there first: a pod that starts without it keeps on without it.
        access = [self._create_access(addon.name, addon.access)] if addon.access else []
        return aws.eks.Addon(
            f"{self._prefix}-{addon.name}",
            cluster_name=self._cluster_name,
            addon_name=addon.name,
            configuration_values=json.dumps(addon.configuration) if addon.configuration else None,
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            opts=pulumi.ResourceOptions(parent=self, depends_on=[*self._depends_on, *access]),
        )

    def _create_access(self, addon_name: str, access: AddonAccess) -> aws.eks.PodIdentityAssociation:
        return pod_role(
            f"{self._prefix}-{addon_name}",
            cluster_name=self._cluster_name,
            namespace="kube-system",
            service_account=access.service_account,
            managed_policies=[self._account.aws_policy(access.managed_policy)] if access.managed_policy else [],
            statements=access.statements,
            parent=self,
            depends_on=self._depends_on,
        )
