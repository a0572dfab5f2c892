"""Waiting for an object to be ready, or gone; and what to tell when it does not happen."""

import threading
import time
from collections.abc import Iterator

from tests.plugins.kubernetes.cluster import ApiError, Cluster, Manifest, Reference, Unreachable
from tests.plugins.kubernetes.discovery import NoSuchKind
from tests.plugins.kubernetes.readiness import Hopeless, missing

_POLL_S = 0.5
# The real provider's defaults: provider/pkg/await, *.go.
_ROLLOUT_TIMEOUT_S, _TIMEOUT_S = 600, 300
_ROLLED_OUT = {"Deployment", "StatefulSet", "DaemonSet", "Job", "Pod", "Service"}
_MAX_EVENTS = 10


class NotReady(Exception):
    """Why, and the object as it was last seen."""

    def __init__(self, why: str, live: Manifest) -> None:
        super().__init__(why)
        self.live = live


class StillThere(Exception):
    """A deletion that did not finish."""


def wait_until_ready(cluster: Cluster, live: Manifest, timeout_s: float | None, cancelled: threading.Event) -> Manifest:
    """The object once it is ready."""
    reference = Reference.of(live)
    timeout_s = timeout_s or _timeout_s(live)
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            lacks = missing(live, cluster)
            if lacks is None:
                return live
            if cancelled.is_set():
                raise NotReady(f"{reference} was made, and not waited for: cancelled; {lacks}", live)
            if time.monotonic() > deadline:
                raise NotReady(
                    f"{reference} is not ready after {timeout_s:.0f} s: {_explained(lacks, live, cluster)}", live
                )
            cancelled.wait(_POLL_S)
            current = cluster.get(reference)
        except Hopeless as reason:
            raise NotReady(f"{reference} cannot become ready: {_explained(str(reason), live, cluster)}", live) from None
        except (ApiError, Unreachable) as error:
            raise NotReady(f"{reference} was made, and then the API server said: {error}", live) from None
        if current is None:
            raise NotReady(f"{reference} was deleted by somebody while it was waited for", live)
        live = current


def wait_until_gone(cluster: Cluster, live: Manifest, timeout_s: float | None, cancelled: threading.Event) -> None:
    """Returns when no object of that name and uid is left."""
    reference, uid = Reference.of(live), live["metadata"]["uid"]
    timeout_s = timeout_s or _timeout_s(live)
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            current = cluster.get(reference)
        except NoSuchKind:  # its CRD went first
            return
        if current is None or current["metadata"]["uid"] != uid:
            return
        if cancelled.is_set():
            raise StillThere(f"{reference} is being deleted; not waited for: cancelled")
        if time.monotonic() > deadline:
            holders = ", ".join(current["metadata"].get("finalizers") or []) or "none"
            conditions = [
                condition["message"]
                for condition in current.get("status", {}).get("conditions") or []
                if condition["status"] == "True" and condition.get("message")
            ]
            raise StillThere(
                "\n".join(
                    [f"{reference} is still there after {timeout_s:.0f} s; its finalizers: {holders}", *conditions]
                )
            )
        cancelled.wait(_POLL_S)


def _timeout_s(live: Manifest) -> float:
    annotated = (live["metadata"].get("annotations") or {}).get("pulumi.com/timeoutSeconds")
    if annotated:
        return float(annotated)
    return _ROLLOUT_TIMEOUT_S if live["kind"] in _ROLLED_OUT else _TIMEOUT_S


def _explained(lacks: str, live: Manifest, cluster: Cluster) -> str:
    """What is missing, and what the conditions, the pods and the events say of it."""
    try:
        return "\n  ".join([lacks, *dict.fromkeys(_clues(live, cluster))])
    except (ApiError, Unreachable):
        return lacks


def _clues(live: Manifest, cluster: Cluster) -> Iterator[str]:
    for condition in live.get("status", {}).get("conditions") or []:
        if condition.get("message"):
            yield f"{condition['type']}={condition['status']}: {condition['message']}"
    namespace = live["metadata"].get("namespace")
    if namespace is None:
        return
    pods = _pods(live, namespace, cluster)
    for pod in pods:
        yield from _pod_clues(pod)
    events = cluster.list("v1", "Event", namespace=namespace, field_selector="type=Warning")
    concerned = {manifest["metadata"]["uid"] for manifest in [live, *pods]}
    about = [event for event in events if event["involvedObject"].get("uid") in concerned]
    for event in about[-_MAX_EVENTS:]:
        yield f"{event['involvedObject']['kind']} {event['involvedObject']['name']}: {event['message']}"


def _pods(live: Manifest, namespace: str, cluster: Cluster) -> list[Manifest]:
    labels = (live.get("spec", {}).get("selector") or {}).get("matchLabels")
    if not labels or live["kind"] not in _ROLLED_OUT:
        return []
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    return cluster.list("v1", "Pod", namespace=namespace, label_selector=selector)


def _pod_clues(pod: Manifest) -> Iterator[str]:
    for container in pod.get("status", {}).get("containerStatuses") or []:
        for state in container["state"].values():
            if state.get("reason"):
                message = f": {state['message']}" if state.get("message") else ""
                yield f"Pod {pod['metadata']['name']}, {container['name']}: {state['reason']}{message}"
    for condition in pod.get("status", {}).get("conditions") or []:
        if condition["status"] == "False" and condition.get("message"):
            yield f"Pod {pod['metadata']['name']}: {condition['message']}"
