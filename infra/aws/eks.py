"""A platform's AWS half, in the order in which it comes to be."""

from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as kubernetes

from infra.aws.addons import NODE_ADDONS, Addons, cluster_addons
from infra.aws.buckets import Buckets
from infra.aws.control_plane import ControlPlane
from infra.aws.efs import SharedFileSystems
from infra.aws.encryption import EncryptionKey
from infra.aws.identity import current_account
from infra.aws.lustre import FsxHandle, LustreFileSystems
from infra.aws.network import Network
from infra.aws.node_groups import NodeGroups
from infra.aws.placement import lustre_zone
from infra.aws.registries import Registries
from infra.aws.team_access import TeamAccess
from infra.config.platform import EksPlatform

__all__ = ["Cluster", "FsxHandle", "build_cluster"]


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What the Kubernetes half builds on."""

    provider: kubernetes.Provider
    kubeconfig: pulumi.Output[str]
    ready: list[pulumi.Resource]
    """What every Kubernetes object must wait for: nodes that run pods, and the add-ons that pods need."""
    efs_ids: dict[str, pulumi.Output[str]]
    fsx: dict[str, FsxHandle]
    buckets: dict[str, pulumi.Output[str]]
    repositories: dict[str, pulumi.Output[str]]


def build_cluster(stack_name: str, config: EksPlatform, region: str) -> Cluster:
    """Everything of a platform that AWS holds."""
    name, cluster_name = stack_name, f"trainyard-{stack_name}"
    protect = config.cluster.deletion_protection
    storage = config.storage

    account = current_account(region)
    linked = any(volume.s3_link for volume in storage.fsx)
    key = EncryptionKey(name, account, lustre_reads_buckets=linked, protect=protect)
    network = Network(name, config.network, account, key.arn)
    control_plane = ControlPlane(name, cluster_name, config.cluster, network, account, key.arn)
    buckets = Buckets(name, stack_name, storage.buckets, account, key.arn, protect=protect)
    shared = SharedFileSystems(
        name,
        storage.efs,
        vpc_id=network.vpc_id,
        subnet_ids=network.private_subnet_ids,
        node_security_group_id=control_plane.security_group_id,
        key_arn=key.arn,
        protect=protect,
    )
    lustre = LustreFileSystems(
        name,
        storage.fsx,
        vpc_id=network.vpc_id,
        subnet_id=network.private_subnet_ids[lustre_zone(config)],
        node_security_group_id=control_plane.security_group_id,
        key_arn=key.arn,
        protect=protect,
        link_after=[buckets],
    )
    images = config.images.build if config.images.registry == "ecr" else []
    registries = Registries(name, stack_name, images, key.arn, protect=protect)

    node_addons = Addons(f"{name}-node", cluster_name, NODE_ADDONS, account, [control_plane.eks])
    nodes = NodeGroups(name, cluster_name, config, network, control_plane, account, node_addons.addons)
    addons = Addons(f"{name}-cluster", cluster_name, cluster_addons(storage), account, list(nodes.groups.values()))
    if storage.buckets:
        TeamAccess(name, cluster_name, config.teams, buckets.read_and_write(), node_addons.addons)

    provider = kubernetes.Provider(
        f"{name}-kubernetes",
        kubeconfig=control_plane.kubeconfig,
        # New for a new cluster and for nothing else: without it, a kubeconfig in other words replaces every object.
        cluster_identifier=control_plane.eks.oidc_issuer,
        opts=pulumi.ResourceOptions(parent=control_plane),
    )
    return Cluster(
        provider=provider,
        kubeconfig=control_plane.kubeconfig,
        ready=[*nodes.groups.values(), *addons.addons],
        efs_ids=shared.ids,
        fsx=lustre.handles,
        buckets=buckets.names,
        repositories=registries.urls,
    )
