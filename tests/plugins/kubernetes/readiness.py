"""When an object counts as ready, by kind, as the real provider waits for it (provider/pkg/await).

Each function says what is still missing, or None once nothing is. Kinds without one are ready when they exist; custom
resources are among them.
"""

from collections.abc import Callable
from typing import Any

from tests.plugins.kubernetes.cluster import Cluster, Manifest, Reference


class Hopeless(Exception):
    """It will not become ready, however long one waits."""


def _condition(live: Manifest, kind: str) -> dict[str, Any]:
    conditions = live.get("status", {}).get("conditions") or []
    return next((condition for condition in conditions if condition["type"] == kind), {})


def _holds(live: Manifest, kind: str) -> bool:
    return _condition(live, kind).get("status") == "True"


def _unseen(live: Manifest) -> str | None:
    seen = live.get("status", {}).get("observedGeneration", 0) >= live["metadata"]["generation"]
    return None if seen else "its controller has not seen it yet"


def _replicas(live: Manifest, wanted: int, *counts: str) -> str | None:
    status = live.get("status", {})
    for count in counts:
        if status.get(count, 0) < wanted:
            return f"{count} is {status.get(count, 0)} of {wanted}"
    return None


def _deployment(live: Manifest, cluster: Cluster) -> str | None:
    wanted = live["spec"]["replicas"]
    missing = _unseen(live) or _replicas(live, wanted, "updatedReplicas", "availableReplicas")
    if missing is None and live["status"].get("replicas", 0) > wanted:
        return "pods of the previous revision are still there"
    return missing


def _stateful_set(live: Manifest, cluster: Cluster) -> str | None:
    return _unseen(live) or _replicas(live, live["spec"]["replicas"], "updatedReplicas", "readyReplicas")


def _daemon_set(live: Manifest, cluster: Cluster) -> str | None:
    wanted = live.get("status", {}).get("desiredNumberScheduled", 0)
    return _unseen(live) or _replicas(live, wanted, "updatedNumberScheduled", "numberAvailable")


def _job(live: Manifest, cluster: Cluster) -> str | None:
    if _holds(live, "Failed"):
        raise Hopeless(f"it failed: {_condition(live, 'Failed').get('message')}")
    return None if _holds(live, "Complete") else "it has not completed"


def _pod(live: Manifest, cluster: Cluster) -> str | None:
    phase = live.get("status", {}).get("phase")
    if phase == "Failed":
        raise Hopeless(f"it failed: {live['status'].get('message') or live['status'].get('reason')}")
    return None if phase == "Succeeded" or _holds(live, "Ready") else f"it is {phase}"


def _crd(live: Manifest, cluster: Cluster) -> str | None:
    names = _condition(live, "NamesAccepted")
    if names.get("status") == "False":
        raise Hopeless(f"its names are taken: {names.get('message')}")
    return None if _holds(live, "Established") else "the API server has not established it"


def _claim(live: Manifest, cluster: Cluster) -> str | None:
    phase = live.get("status", {}).get("phase")
    if phase == "Lost":
        raise Hopeless("its volume is gone")
    if phase == "Bound" or _waits_for_consumer(live, cluster):
        return None
    return f"it is {phase}, not bound to a volume"


def _waits_for_consumer(claim: Manifest, cluster: Cluster) -> bool:
    name = claim["spec"].get("storageClassName")
    if not name:
        return False
    reference = Reference(api_version="storage.k8s.io/v1", kind="StorageClass", namespace=None, name=name)
    storage_class = cluster.get(reference) or {}
    return storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"


def _volume(live: Manifest, cluster: Cluster) -> str | None:
    phase = live.get("status", {}).get("phase")
    return None if phase in ("Available", "Bound") else f"it is {phase}"


def _quota(live: Manifest, cluster: Cluster) -> str | None:
    # The status repeats the limits once the controller counts by them.
    counted = live.get("status", {}).get("hard")
    return None if counted == live["spec"].get("hard") else "the controller does not count by it yet"


def _service(live: Manifest, cluster: Cluster) -> str | None:
    spec = live["spec"]
    if spec.get("clusterIP") == "None" or spec["type"] == "ExternalName":
        return None
    if spec["type"] == "LoadBalancer" and not live.get("status", {}).get("loadBalancer", {}).get("ingress"):
        return "it has no load balancer"
    if not spec.get("selector"):
        return None
    metadata = live["metadata"]
    slices = cluster.list(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        namespace=metadata["namespace"],
        label_selector=f"kubernetes.io/service-name={metadata['name']}",
    )
    endpoints = [endpoint for found in slices for endpoint in found.get("endpoints") or []]
    ready = any(endpoint.get("conditions", {}).get("ready") for endpoint in endpoints)
    return None if ready else "no ready pod has the labels that it selects"


READINESS: dict[tuple[str, str], Callable[[Manifest, Cluster], str | None]] = {
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): _crd,
    ("apps/v1", "DaemonSet"): _daemon_set,
    ("apps/v1", "Deployment"): _deployment,
    ("apps/v1", "StatefulSet"): _stateful_set,
    ("batch/v1", "Job"): _job,
    ("v1", "PersistentVolume"): _volume,
    ("v1", "PersistentVolumeClaim"): _claim,
    ("v1", "Pod"): _pod,
    ("v1", "ResourceQuota"): _quota,
    ("v1", "Service"): _service,
}


def missing(live: Manifest, cluster: Cluster) -> str | None:
    """What an object still lacks; None when it is ready, or when its kind or its annotation asks for no waiting."""
    if (live["metadata"].get("annotations") or {}).get("pulumi.com/skipAwait") == "true":
        return None
    check = READINESS.get((live["apiVersion"], live["kind"]))
    return check(live, cluster) if check else None
