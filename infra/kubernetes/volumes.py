"""Shared volumes as claims: in every team's namespace, one claim for each volume, under the volume's own name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pulumi
import pulumi_kubernetes as kubernetes

from infra.config.platform import Mirrors
from infra.config.storage import EfsVolume, FsxVolume, Storage
from infra.kubernetes.lustre_owner import IMAGE_USER, owner_job_spec
from infra.kubernetes.mirrors import mirrored_image
from infra.kubernetes.namespaces import operator_namespace
from infra.versions import BUSYBOX_IMAGE

if TYPE_CHECKING:
    from infra.aws.eks import Cluster, FsxHandle

Namespaces = Mapping[str, kubernetes.core.v1.Namespace]

_OWNER_NAMESPACE = "trainyard-volumes"


def claim_spec(size_gib: int, *, storage_class: str | None, volume_name: str | None = None) -> dict[str, Any]:
    """The spec of a claim that many nodes mount; without a class, the cluster's default one binds it."""
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": f"{size_gib}Gi"}},
    }
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    if volume_name is not None:
        spec["volumeName"] = volume_name
    return spec


def efs_parameters(file_system_id: pulumi.Input[str]) -> dict[str, pulumi.Input[str]]:
    """Parameters of the EFS CSI driver: a namespace's folder outlives its claim, and is found again by the next."""
    return {
        "provisioningMode": "efs-ap",
        "fileSystemId": file_system_id,
        "directoryPerms": "700",
        "uid": str(IMAGE_USER),
        "gid": str(IMAGE_USER),
        "subPathPattern": "${.PVC.namespace}",
        "ensureUniqueDirectory": "false",
    }


def lustre_volume_spec(volume: FsxVolume, handle: FsxHandle, namespace: str) -> dict[str, Any]:
    """A volume that is there already, for the claim of one namespace and no other."""
    return {
        "capacity": {"storage": f"{volume.capacity_gib}Gi"},
        "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "mountOptions": ["flock"],
        "claimRef": {"name": volume.name, "namespace": namespace},
        "csi": {
            "driver": "fsx.csi.aws.com",
            # A node mounts a handle once, so each volume has its own (kubernetes#91556); the driver mounts by the
            # attributes below and looks at no handle (its `NodePublishVolume`).
            "volumeHandle": pulumi.Output.concat(handle.id, "/", namespace),
            "volumeAttributes": {"dnsname": handle.dns_name, "mountname": handle.mount_name},
        },
    }


class SharedVolumes(pulumi.ComponentResource):
    """The claims of every team's namespace, and on EKS what they bind to.

    There, a storage class for each EFS file system, whose access points give each namespace a folder of its own; and
    for each Lustre file system one volume per namespace, all with the same files.
    """

    def __init__(
        self,
        name: str,
        *,
        storage: Storage,
        namespaces: Namespaces,
        cluster: Cluster | None,
        mirrors: Mirrors,
        provider: kubernetes.Provider,
    ) -> None:
        """`cluster` is the one that was built here; None on a cluster whose classes are there already."""
        super().__init__("trainyard:storage:SharedVolumes", name, None, pulumi.ResourceOptions(providers=[provider]))
        self._name = name
        for efs in storage.efs:
            bound_by = [self._create_efs_class(efs, cluster)] if cluster else []
            for namespace, resource in namespaces.items():
                spec = claim_spec(efs.size_gib, storage_class=efs.storage_class)
                self._create_claim(efs.name, namespace, spec, [resource, *bound_by])
        if cluster:
            self._create_lustre_claims(storage.fsx, namespaces, cluster, mirrors)
        else:
            for fsx in storage.fsx:
                for namespace, resource in namespaces.items():
                    self._create_claim(
                        fsx.name, namespace, claim_spec(fsx.capacity_gib, storage_class=None), [resource]
                    )
        self.register_outputs({})

    def _create_efs_class(self, efs: EfsVolume, cluster: Cluster) -> kubernetes.storage.v1.StorageClass:
        return kubernetes.storage.v1.StorageClass(
            f"{self._name}-{efs.storage_class}",
            metadata={"name": efs.storage_class},
            provisioner="efs.csi.aws.com",
            parameters=efs_parameters(cluster.efs_ids[efs.name]),
            opts=pulumi.ResourceOptions(parent=self, depends_on=cluster.ready),
        )

    def _create_lustre_claims(
        self, volumes: Sequence[FsxVolume], namespaces: Namespaces, cluster: Cluster, mirrors: Mirrors
    ) -> None:
        if not volumes:
            return
        owners = operator_namespace(
            f"{self._name}-namespace",
            name=_OWNER_NAMESPACE,
            level="baseline",  # for the one pod that runs as root
            opts=pulumi.ResourceOptions(parent=self, depends_on=cluster.ready),
        )
        for fsx in volumes:
            for namespace, resource in namespaces.items():
                self._bind_lustre(fsx, namespace, resource, cluster)
            claim = self._bind_lustre(fsx, _OWNER_NAMESPACE, owners, cluster)
            self._hand_over(fsx, claim, mirrors)

    def _bind_lustre(
        self, fsx: FsxVolume, namespace: str, resource: kubernetes.core.v1.Namespace, cluster: Cluster
    ) -> kubernetes.core.v1.PersistentVolumeClaim:
        volume = kubernetes.core.v1.PersistentVolume(
            f"{self._name}-{fsx.name}-{namespace}-volume",
            metadata={"name": f"{fsx.name}-{namespace}"},
            spec=lustre_volume_spec(fsx, cluster.fsx[fsx.name], namespace),
            opts=pulumi.ResourceOptions(parent=self, depends_on=cluster.ready),
        )
        spec = claim_spec(fsx.capacity_gib, storage_class="", volume_name=f"{fsx.name}-{namespace}")
        return self._create_claim(fsx.name, namespace, spec, [resource, volume])

    def _hand_over(self, fsx: FsxVolume, claim: kubernetes.core.v1.PersistentVolumeClaim, mirrors: Mirrors) -> None:
        kubernetes.batch.v1.Job(
            f"{self._name}-{fsx.name}-owner",
            metadata={"name": f"{fsx.name}-owner", "namespace": _OWNER_NAMESPACE},
            spec=owner_job_spec(fsx.name, mirrored_image(BUSYBOX_IMAGE, mirrors)),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[claim]),
        )

    def _create_claim(
        self, volume: str, namespace: str, spec: Mapping[str, Any], after: Iterable[pulumi.Resource]
    ) -> kubernetes.core.v1.PersistentVolumeClaim:
        return kubernetes.core.v1.PersistentVolumeClaim(
            f"{self._name}-{volume}-{namespace}",
            metadata={"name": volume, "namespace": namespace},
            spec=spec,
            opts=pulumi.ResourceOptions(parent=self, depends_on=list(after)),
        )
