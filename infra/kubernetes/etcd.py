"""etcd, a meeting place for torchrun's processes that is none of the pods themselves."""

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from infra.config import platform as config
from infra.kubernetes.helm import OWN_CHARTS, release
from infra.kubernetes.mirrors import ChartSource, mirrored_image
from infra.kubernetes.namespaces import TEAM_LABELS, operator_namespace
from infra.versions import ETCD_IMAGE

# Also the name of the chart, of its client Service and of the storage class.
_NAME = "etcd"
_VOLUME_GIB = 2  # a rendezvous is a few kilobytes; the rest is etcd's log, cut off every 100,000 writes


def etcd_values(etcd: config.Etcd, *, storage_class: str | None, mirrors: config.Mirrors) -> dict[str, Any]:
    """Values of charts/etcd; without a storage class, several members take the cluster's default."""
    volume = {"size": f"{_VOLUME_GIB}Gi", "storageClassName": storage_class or ""} if etcd.members > 1 else {}
    return {
        "image": mirrored_image(ETCD_IMAGE, mirrors),
        "members": etcd.members,
        "volume": volume,
        "clientNamespaces": TEAM_LABELS,
    }


class Etcd(pulumi.ComponentResource):
    """The members, from our own chart."""

    def __init__(
        self,
        name: str,
        *,
        etcd: config.Etcd,
        on_eks: bool,
        mirrors: config.Mirrors,
        provider: kubernetes.Provider,
        after: Sequence[pulumi.Resource],
    ) -> None:
        super().__init__("trainyard:operators:Etcd", name, None, pulumi.ResourceOptions(providers=[provider]))
        options = pulumi.ResourceOptions(parent=self, depends_on=after)
        before: list[pulumi.Resource] = [
            operator_namespace(
                f"{name}-namespace", name=_NAME, level="restricted", opts=options, serves_experiments=True
            )
        ]
        storage_class = _NAME if on_eks and etcd.members > 1 else None
        if storage_class:
            before.append(_create_storage_class(f"{name}-storage-class", storage_class, options))
        release(
            f"{name}-release",
            ChartSource(chart=f"{OWN_CHARTS}/{_NAME}"),
            name=_NAME,
            namespace=_NAME,
            values=etcd_values(etcd, storage_class=storage_class, mirrors=mirrors),
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=before,
                # Members are told of each other once, when they first start.
                replace_on_changes=["values.members"],
                delete_before_replace=True,
            ),
        )
        self.register_outputs({})


def _create_storage_class(
    resource_name: str, name: str, opts: pulumi.ResourceOptions
) -> kubernetes.storage.v1.StorageClass:
    """EKS comes without a default class. Not EFS: etcd waits for the disk at every write."""
    return kubernetes.storage.v1.StorageClass(
        resource_name,
        metadata={"name": name},
        provisioner="ebs.csi.aws.com",
        parameters={"type": "gp3", "encrypted": "true"},
        # Such a volume can be mounted in its zone alone, which is the pod's once it has a node.
        volume_binding_mode="WaitForFirstConsumer",
        opts=opts,
    )
