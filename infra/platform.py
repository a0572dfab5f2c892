"""A platform's stack: a cluster, and all that turns it into a place to train.

From the ground up: nodes and their devices, the teams' namespaces and volumes, the scheduler, and the operators on top.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pulumi
import pulumi_kubernetes as kubernetes

from infra.config.platform import EksPlatform, PlatformConfig
from infra.digest import config_digest
from infra.kubernetes.device_plugins import DevicePlugins
from infra.kubernetes.etcd import Etcd
from infra.kubernetes.existing import existing_kubeconfig, existing_provider
from infra.kubernetes.mpi_conflict import refuse_foreign_mpi_jobs
from infra.kubernetes.mpi_operator import MpiOperator
from infra.kubernetes.namespaces import TeamNamespaces
from infra.kubernetes.priorities import Priorities
from infra.kubernetes.trainer import Trainer
from infra.kubernetes.training_operator import TrainingOperator
from infra.kubernetes.volcano import Volcano
from infra.kubernetes.volumes import SharedVolumes
from infra.nodes import nodes_of
from infra.versions import KUBERNETES, volcano_chart, volcano_version

if TYPE_CHECKING:
    from infra.aws.eks import Cluster


def deploy_platform(stack_name: str, config: PlatformConfig, region: str | None) -> None:
    """What `pulumi up` does for a platform's stack; `region` is the `aws:region` that EKS needs."""
    cluster: Cluster | None = None
    ready: Sequence[pulumi.Resource] = []
    kubeconfig: pulumi.Output[str] | None
    if isinstance(config, EksPlatform):
        from infra.aws.eks import build_cluster  # a second of AWS SDKs, which a cluster that is there already is spared

        assert region, "a platform on EKS is read only with its region"
        cluster = build_cluster(stack_name, config, region)
        provider, kubeconfig, ready = cluster.provider, cluster.kubeconfig, cluster.ready
        nodes = list(nodes_of(config).values())
        DevicePlugins("devices", nodes=nodes, mirrors=config.mirrors, provider=provider, after=ready)
    else:
        if config.operators.mpi and config.operators.mpi.enabled and not pulumi.runtime.is_dry_run():
            refuse_foreign_mpi_jobs(stack_name, config.cluster)
        provider, kubeconfig = existing_provider(stack_name, config.cluster), existing_kubeconfig(config.cluster)

    teams = TeamNamespaces(
        "teams", teams=config.teams, pull_secret=config.images.pull_secret, provider=provider, after=ready
    )
    Priorities("priorities", priorities=config.priorities, provider=provider, after=ready)
    SharedVolumes(
        "volumes",
        storage=config.storage,
        namespaces=teams.namespaces,
        cluster=cluster,
        mirrors=config.mirrors,
        provider=provider,
    )
    _install_operators(config, provider, ready)

    pulumi.export("config_digest", config_digest(config))
    pulumi.export("namespaces", {team.name: team.namespace for team in config.teams})
    if cluster is not None:
        pulumi.export("repositories", cluster.repositories)
    if kubeconfig is not None:
        pulumi.export("kubeconfig", pulumi.Output.secret(kubeconfig))


def _install_operators(config: PlatformConfig, provider: kubernetes.Provider, ready: Sequence[pulumi.Resource]) -> None:
    """Volcano first: with a gang scheduler, the operators look for its PodGroup when they start."""
    operators, on_eks = config.operators, isinstance(config, EksPlatform)
    gang_scheduler, after = "", ready
    if operators.volcano:
        minor = config.cluster.kubernetes_version if isinstance(config, EksPlatform) else KUBERNETES
        volcano = Volcano(
            "volcano",
            volcano=operators.volcano,
            chart=volcano_chart(operators.volcano.version or volcano_version(minor)),
            namespaces=[team.namespace for team in config.teams],
            mirrors=config.mirrors,
            provider=provider,
            after=ready,
        )
        gang_scheduler, after = "volcano", [volcano.release]
    # On EKS, two of each on different nodes: jobs cannot be submitted while a validating webhook is away.
    replicas = 2 if on_eks else 1
    if operators.training:
        TrainingOperator(
            "training-operator",
            operator=operators.training,
            gang_scheduler=gang_scheduler,
            replicas=replicas,
            mirrors=config.mirrors,
            provider=provider,
            after=after,
        )
    if operators.mpi and operators.mpi.enabled:
        MpiOperator(
            "mpi-operator",
            gang_scheduler=gang_scheduler,
            replicas=replicas,
            mirrors=config.mirrors,
            provider=provider,
            after=after,
        )
    if operators.etcd.enabled:
        Etcd("etcd", etcd=operators.etcd, on_eks=on_eks, mirrors=config.mirrors, provider=provider, after=ready)
    if operators.trainer_v2.enabled:
        Trainer("trainer", replicas=replicas, mirrors=config.mirrors, provider=provider, after=after)
