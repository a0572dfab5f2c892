"""When an object counts as ready."""

from typing import Any

import pytest

from tests.plugins.kubernetes.cluster import Cluster
from tests.plugins.kubernetes.readiness import Hopeless, missing


def _live(api_version: str, kind: str, *, spec: object = None, **status: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "b", "generation": 2}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec or {}, "status": status}


def _condition(kind: str, status: str = "True", message: str = "") -> list[dict[str, str]]:
    return [{"type": kind, "status": status, "message": message}]


_ROLLED_OUT = {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}
_SCHEDULED = {"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3}
_PARTLY = {"observedGeneration": 2, "updatedReplicas": 2, "readyReplicas": 1}


@pytest.mark.parametrize(
    ("live", "lacks"),
    [
        (_live("apps/v1", "Deployment", spec={"replicas": 2}, **_ROLLED_OUT), None),
        (_live("apps/v1", "Deployment", spec={"replicas": 2}, **{**_ROLLED_OUT, "observedGeneration": 1}), "not seen"),
        (_live("apps/v1", "Deployment", spec={"replicas": 3}, **_ROLLED_OUT), "updatedReplicas is 2 of 3"),
        (_live("apps/v1", "Deployment", spec={"replicas": 2}, **{**_ROLLED_OUT, "replicas": 3}), "previous revision"),
        (_live("apps/v1", "StatefulSet", spec={"replicas": 2}, **_PARTLY), "readyReplicas is 1 of 2"),
        (_live("apps/v1", "DaemonSet", **_SCHEDULED), None),
        (_live("apps/v1", "DaemonSet", **{**_SCHEDULED, "numberAvailable": 1}), "numberAvailable is 1 of 3"),
        (_live("batch/v1", "Job", active=1), "has not completed"),
        (_live("batch/v1", "Job", conditions=_condition("Complete")), None),
        (_live("v1", "Pod", phase="Pending"), "it is Pending"),
        (_live("v1", "Pod", phase="Running", conditions=_condition("Ready")), None),
        (_live("v1", "PersistentVolumeClaim", phase="Pending"), "not bound"),
        (_live("v1", "PersistentVolumeClaim", phase="Bound"), None),
        (_live("v1", "PersistentVolume", phase="Available"), None),
        (_live("v1", "ResourceQuota", spec={"hard": {"pods": "3"}}), "does not count"),
        (_live("v1", "Service", spec={"type": "ClusterIP", "clusterIP": "None", "selector": {"a": "b"}}), None),
        (_live("apiextensions.k8s.io/v1", "CustomResourceDefinition", conditions=_condition("Established")), None),
        (_live("kubeflow.org/v1", "PyTorchJob"), None),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else None,
)
def test_what_an_object_lacks(cluster: Cluster, live: dict[str, Any], lacks: str | None) -> None:
    found = missing(live, cluster)
    assert found is None if lacks is None else lacks in str(found)


def test_a_failed_job_is_not_waited_for(cluster: Cluster) -> None:
    failed = _live("batch/v1", "Job", conditions=_condition("Failed", message="backoff limit"))
    with pytest.raises(Hopeless, match="backoff limit"):
        missing(failed, cluster)


def test_the_annotation_asks_for_no_waiting(cluster: Cluster) -> None:
    job = _live("batch/v1", "Job", active=1)
    job["metadata"]["annotations"] = {"pulumi.com/skipAwait": "true"}
    assert missing(job, cluster) is None
