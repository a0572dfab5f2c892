"""Binds claims of the shared classes: a folder of the node for each, which every pod may mount.

It stands in for the EFS and FSx drivers. A claim's folder is named for it, outlives the pods and goes with the claim.
"""

import shutil
import time
from typing import Any

import kubernetes.client as api
import kubernetes.config
import kubernetes.watch

from tests.cluster.paths import KUBECONFIG, STATE

CLASSES = ("efs-sc", "fsx-sc")
_PROVISIONER = "trainyard.dev/folder"
_FOLDERS = STATE / "volumes"


def main() -> None:
    kubernetes.config.load_kube_config(str(KUBECONFIG))
    for name in CLASSES:
        _create_class(name)
    core = api.CoreV1Api()
    while True:
        try:
            _bind_until_the_watch_ends(core)
        except Exception as error:  # the API server is restarting, or an object has changed meanwhile
            print(f"trying again: {error}", flush=True)
            time.sleep(1)


def _create_class(name: str) -> None:
    # Immediate, as the real drivers' classes: a claim is bound before the first pod names it.
    body = api.V1StorageClass(
        metadata=api.V1ObjectMeta(name=name, annotations=_DEFAULT if name == CLASSES[0] else None),
        provisioner=_PROVISIONER,
        reclaim_policy="Delete",
        volume_binding_mode="Immediate",
    )
    try:
        api.StorageV1Api().create_storage_class(body)
    except api.ApiException as error:
        if error.status != 409:
            raise


_DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


def _bind_until_the_watch_ends(core: api.CoreV1Api) -> None:
    for volume in core.list_persistent_volume().items:
        _reclaim_if_released(core, volume)
    for claim in core.list_persistent_volume_claim_for_all_namespaces().items:
        _bind(core, claim)
    watch = kubernetes.watch.Watch()
    for event in watch.stream(core.list_persistent_volume_claim_for_all_namespaces, timeout_seconds=5):
        if event["type"] != "DELETED":
            _bind(core, event["object"])


def _bind(core: api.CoreV1Api, claim: Any) -> None:
    """Makes the volume of a pending claim; Kubernetes itself joins the two."""
    if claim.status.phase != "Pending" or claim.spec.storage_class_name not in CLASSES or claim.spec.volume_name:
        return
    name = f"pvc-{claim.metadata.uid}"
    folder = _FOLDERS / f"{claim.metadata.namespace}-{claim.metadata.name}-{claim.metadata.uid[:8]}"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)  # pods run as users of their own; an EFS access point maps them
    owner = api.V1ObjectReference(
        kind="PersistentVolumeClaim",
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        uid=claim.metadata.uid,
    )
    volume = api.V1PersistentVolume(
        metadata=api.V1ObjectMeta(name=name, annotations={"pv.kubernetes.io/provisioned-by": _PROVISIONER}),
        spec=api.V1PersistentVolumeSpec(
            capacity=claim.spec.resources.requests,
            access_modes=claim.spec.access_modes,
            storage_class_name=claim.spec.storage_class_name,
            persistent_volume_reclaim_policy="Retain",
            host_path=api.V1HostPathVolumeSource(path=str(folder)),
            claim_ref=owner,
        ),
    )
    try:
        core.create_persistent_volume(volume)
    except api.ApiException as error:
        if error.status != 409:
            raise
    print(f"bound {owner.namespace}/{owner.name} to {folder}", flush=True)


def _reclaim_if_released(core: api.CoreV1Api, volume: Any) -> None:
    annotations = volume.metadata.annotations or {}
    if volume.status.phase == "Released" and annotations.get("pv.kubernetes.io/provisioned-by") == _PROVISIONER:
        core.delete_persistent_volume(volume.metadata.name)
        shutil.rmtree(volume.spec.host_path.path, ignore_errors=True)
        print(f"removed {volume.spec.host_path.path}", flush=True)


if __name__ == "__main__":
    main()
