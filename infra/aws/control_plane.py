"""The EKS control plane: API server, its log, and who may enter."""

from collections.abc import Mapping

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks

from infra.aws.identity import Account
from infra.aws.logs import log_group
from infra.aws.network import Network
from infra.config.platform import EksCluster

_LOG_TYPES = ["api", "audit", "authenticator", "controllerManager", "scheduler"]


class ControlPlane(pulumi.ComponentResource):
    """A cluster without nodes and without add-ons: node groups and add-ons bring their own."""

    def __init__(
        self,
        name: str,
        cluster_name: str,
        config: EksCluster,
        network: Network,
        account: Account,
        key_arn: pulumi.Input[str],
    ) -> None:
        super().__init__("trainyard:aws:ControlPlane", name)
        # EKS would make this group itself, unencrypted and kept for ever; it writes into one that is there already.
        logs = log_group(
            f"{name}-logs", log_group_name=f"/aws/eks/{cluster_name}/cluster", key_arn=key_arn, parent=self
        )
        self.eks = eks.Cluster(
            f"{name}-eks",
            name=cluster_name,
            version=config.kubernetes_version,
            vpc_id=network.vpc_id,
            private_subnet_ids=list(network.private_subnet_ids.values()),
            public_subnet_ids=list(network.public_subnet_ids.values()),
            endpoint_private_access=True,
            endpoint_public_access=bool(config.public_access_cidrs),
            public_access_cidrs=config.public_access_cidrs or None,
            authentication_mode=eks.AuthenticationMode.API,
            access_entries=_admin_entries(config.admins, account),
            encryption_config_key_arn=key_arn,
            enabled_cluster_log_types=_LOG_TYPES,
            create_oidc_provider=True,
            deletion_protection=config.deletion_protection,
            skip_default_node_group=True,
            # Without its two groups, nodes and control plane share the one that EKS makes; `cluster_security_group_id`
            # is then that one.
            skip_default_security_groups=True,
            bootstrap_self_managed_addons=False,
            use_default_vpc_cni=True,
            kube_proxy_addon_options=eks.KubeProxyAddonOptionsArgs(enabled=False),
            coredns_addon_options=eks.CoreDnsAddonOptionsArgs(enabled=False),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[logs]),
        )
        self.security_group_id: pulumi.Output[str] = self.eks.cluster_security_group_id
        self.kubeconfig: pulumi.Output[str] = self.eks.kubeconfig_json
        self.register_outputs({"kubeconfig": self.kubeconfig})


def _admin_entries(principals: list[str], account: Account) -> Mapping[str, eks.AccessEntryArgs]:
    """Keyed by the principal, so that removing one from the list leaves the others alone."""
    policy_arn = pulumi.Output.concat(
        "arn:", account.partition, ":eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    )
    return {
        principal.rpartition(":")[2].replace("/", "-"): eks.AccessEntryArgs(
            principal_arn=principal,
            access_policies={
                "cluster-admin": eks.AccessPolicyAssociationArgs(
                    policy_arn=policy_arn,
                    access_scope=aws.eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
                )
            },
        )
        for principal in principals
    }
