"""`indexed-job`: a plain Kubernetes Job with one completion per pod, and a headless Service for their names.

It needs no operator. A pod's index is its node rank, and `<run>-0.<run>` is the master; an init container waits until
that name resolves. Under Volcano, a PodGroup of ours makes the pods a gang.
"""

from typing import Any

from workloads.launchers.kind import LauncherKind
from workloads.launchers.names import wait_for_master
from workloads.pod import Manifest, labels, metadata, pod_spec, uses_volcano
from workloads.resolve import Run

_PORT = 29500  # torchrun's default
_INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
# Exit codes of training.launch: of a configuration that no restart can mend, and of a run that stopped as it was asked.
_CONFIGURATION_ERROR = 2
_STOPPED = 143
# Pulumi would wait for a Job to finish and for a Service to have ready pods; a run is submitted, not awaited.
_NOT_AWAITED = {"pulumi.com/skipAwait": "true"}


def manifests(run: Run, name: str) -> list[Manifest]:
    made = [_service(run, name), _job(run, name)]
    return [_pod_group(run, name), *made] if uses_volcano(run.platform) else made


def _service(run: Run, name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(run, name, annotations=_NOT_AWAITED),
        "spec": {
            "clusterIP": "None",
            # Names must resolve before any pod is ready: the pods wait for them.
            "publishNotReadyAddresses": True,
            "selector": {"app.kubernetes.io/instance": name},
            "ports": [{"name": "torchrun", "port": _PORT}],
        },
    }


def _job(run: Run, name: str) -> Manifest:
    nodes = run.experiment.nodes
    spec = pod_spec(run, name, container="trainer", variables=_rendezvous(run, name))
    spec |= {
        "restartPolicy": "Never",
        "subdomain": name,
        "initContainers": [wait_for_master(f"{name}-0.{name}", spec["containers"][0])],
    }
    annotations = {"scheduling.k8s.io/group-name": name} if uses_volcano(run.platform) else {}
    job: Manifest = {
        "completionMode": "Indexed",
        "completions": nodes,
        "parallelism": nodes,
        # One crash takes every pod of the gang with it, so a restart of the run costs one failure per pod.
        "backoffLimit": run.experiment.restarts * nodes,
        "podFailurePolicy": {
            "rules": [
                {
                    "action": "FailJob",
                    "onExitCodes": {"containerName": "trainer", "operator": "In", "values": [_CONFIGURATION_ERROR]},
                },
                # An evicted pod (Spot, drain, preemption) is not the run's failure, nor are those that stop with it.
                # Volcano marks its victims with the condition since 1.15; by the code, the older ones are known too.
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {
                    "action": "Ignore",
                    "onExitCodes": {"containerName": "trainer", "operator": "In", "values": [_STOPPED]},
                },
            ]
        },
        "template": {"metadata": {"labels": labels(run, name), "annotations": annotations}, "spec": spec},
    }
    if run.experiment.max_hours:
        job["activeDeadlineSeconds"] = round(run.experiment.max_hours * 3600)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(run, name, annotations=_NOT_AWAITED),
        "spec": job,
    }


def _rendezvous(run: Run, name: str) -> list[dict[str, Any]]:
    """What torchrun reads; the rank is the pod's index, which the Job controller writes as a label."""
    index = {"fieldRef": {"fieldPath": f"metadata.labels['{_INDEX_LABEL}']"}}
    return [
        {"name": "PET_NNODES", "value": str(run.experiment.nodes)},
        {"name": "PET_NPROC_PER_NODE", "value": str(run.processes_per_node)},
        {"name": "PET_NODE_RANK", "valueFrom": index},
        {"name": "PET_MASTER_ADDR", "value": f"{name}-0.{name}"},
        {"name": "PET_MASTER_PORT", "value": str(_PORT)},
    ]


def _pod_group(run: Run, name: str) -> Manifest:
    spec: Manifest = {"minMember": run.experiment.nodes, "queue": run.queue}
    if run.experiment.priority:
        spec["priorityClassName"] = run.experiment.priority
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata(run, name),
        "spec": spec,
    }


LAUNCHER = LauncherKind(
    name="indexed-job",
    manifests=manifests,
    operator=None,
    rendezvous="static: the pod's index and the headless Service's names",
    injects="PET_*, set here; the rank is a label of the Job controller's",
    restarts="the Job controller, pod by pod; exit code 2 fails the run at once, evictions do not count",
    gang="PodGroup made here, all pods",
    choose_when="a cluster without the Training Operator, or a run that should depend on Kubernetes alone",
)
