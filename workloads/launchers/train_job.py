"""`train-job`: a TrainJob of Kubeflow Trainer v2, which makes a JobSet of it, which makes an indexed Job.

A TrainJob says how many nodes and processes; everything else comes from the runtime that it names. Ours is a
TrainingRuntime of the run's own, with the whole pod: a TrainJob cannot set a scheduler, a priority, a grace period, the
host's network or a time limit, and what it can set of the rest, Trainer does not count when it sizes the gang. A
ClusterTrainingRuntime would have to be the same for every run.

Restarts are JobSet's: one pod that fails fails its Job, and the whole gang starts again.
"""

from workloads.launchers.kind import LauncherKind
from workloads.launchers.names import wait_for_master
from workloads.pod import Manifest, labels, metadata, pod_spec, uses_volcano
from workloads.resolve import Run

_API = "trainer.kubeflow.org/v1alpha1"
# Trainer's names for the Job whose pods train and for the container that it gives its variables.
_NODE = "node"
_ROLE = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
_QUEUE = "scheduling.volcano.sh/queue-name"
# Exit codes of training.launch: a configuration that no restart can mend; told to stop, and has saved.
_CONFIGURATION_ERROR = 2
_STOPPED = 143
# The condition of a pod that was drained, preempted or lost with its node. Its peers stop with it, perhaps before it.
_EVICTED = "DisruptionTarget"


def manifests(run: Run, name: str) -> list[Manifest]:
    return [_runtime(run, name), _train_job(run, name)]


def _train_job(run: Run, name: str) -> Manifest:
    return {
        "apiVersion": _API,
        "kind": "TrainJob",
        "metadata": metadata(run, name),
        "spec": {
            "runtimeRef": {"kind": "TrainingRuntime", "name": name},
            "trainer": {"numNodes": run.experiment.nodes, "numProcPerNode": run.processes_per_node},
        },
    }


def _runtime(run: Run, name: str) -> Manifest:
    # Trainer puts its variables into the pods of a runtime for torch only.
    spec: Manifest = {"mlPolicy": {"torch": {}}}
    job_set: Manifest = {"metadata": {"labels": labels(run, name)}, "spec": _job_set(run, name)}
    if uses_volcano(run.platform):
        spec["podGroupPolicy"] = {"volcano": {}}
        job_set["metadata"]["annotations"] = {_QUEUE: run.queue}
    return {
        "apiVersion": _API,
        "kind": "TrainingRuntime",
        "metadata": metadata(run, name),
        "spec": {**spec, "template": job_set},
    }


def _job_set(run: Run, name: str) -> Manifest:
    return {
        "failurePolicy": {
            "maxRestarts": run.experiment.restarts,
            # The first rule that fits decides; any other failure is a restart that counts.
            "rules": [
                {
                    "name": "stopped",
                    "action": "RestartJobSetAndIgnoreMaxRestarts",
                    "onJobFailureReasons": ["PodFailurePolicy"],
                    "onJobFailureMessagePatterns": [_EVICTED, f"exit code {_STOPPED} "],
                },
                {
                    "name": "final",
                    "action": "FailJobSet",
                    "onJobFailureReasons": ["PodFailurePolicy", "DeadlineExceeded"],
                },
            ],
        },
        "replicatedJobs": [
            {
                "name": _NODE,
                "replicas": 1,
                "template": {"metadata": {"labels": {**labels(run, name), **_ROLE}}, "spec": _job(run, name)},
            }
        ],
    }


def _job(run: Run, name: str) -> Manifest:
    spec = pod_spec(run, name, container=_NODE, variables=[])
    spec |= {
        "restartPolicy": "Never",
        "initContainers": [wait_for_master(f"{name}-{_NODE}-0-0.{name}", spec["containers"][0])],
    }
    job: Manifest = {
        "backoffLimit": 0,
        # Each ends the Job at once. Which it was is in the Job's message, by which JobSet tells them apart.
        "podFailurePolicy": {
            "rules": [
                *(
                    {
                        "action": "FailJob",
                        "onExitCodes": {"containerName": _NODE, "operator": "In", "values": [code]},
                    }
                    for code in (_CONFIGURATION_ERROR, _STOPPED)
                ),
                {"action": "FailJob", "onPodConditions": [{"type": _EVICTED, "status": "True"}]},
            ]
        },
        "template": {"metadata": {"labels": labels(run, name)}, "spec": spec},
    }
    if run.experiment.max_hours:
        job["activeDeadlineSeconds"] = round(run.experiment.max_hours * 3600)
    return job


LAUNCHER = LauncherKind(
    name="train-job",
    manifests=manifests,
    operator="trainer_v2",
    rendezvous="static: the pod's index and the names of JobSet's headless Service",
    injects="PET_*, by Trainer",
    restarts="JobSet, the whole gang at once; exit code 2 fails the run at once, evictions do not count",
    gang="PodGroup made by Trainer, all pods",
    choose_when="a cluster on Kubeflow Trainer v2, the successor of the Training Operator",
)
