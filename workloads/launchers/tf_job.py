"""`tf-job`: a TFJob of the Kubeflow Training Operator v1, for TensorFlow's MultiWorkerMirroredStrategy.

The operator gives each pod TF_CONFIG: every worker's address, and which of them the pod is. All pods are workers, and
the strategy takes worker 0 for its chief; a replica of the type Chief would add a role that its programs have to tell
apart, and end the job, and with it the others, as soon as it is done.
"""

import json

from workloads.launchers.kind import LauncherKind
from workloads.launchers.kubeflow import replica, run_policy, solo_command
from workloads.pod import Manifest, metadata
from workloads.resolve import Run

# The operator injects its variable into the container of this name, and only there.
_CONTAINER = "tensorflow"


def manifests(run: Run, name: str) -> list[Manifest]:
    workers = replica(run, name, run.experiment.nodes, container=_CONTAINER, command=solo_command(run))
    return [
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "TFJob",
            "metadata": metadata(run, name),
            "spec": {
                # By default the job has succeeded with worker 0, and a worker that fails after it goes unseen.
                "successPolicy": "AllWorkers",
                "runPolicy": run_policy(run),
                "tfReplicaSpecs": {"Worker": workers},
            },
        }
    ]


def local_variables(ports: list[int]) -> list[dict[str, str]]:
    hosts = [f"localhost:{port}" for port in ports]
    return [
        {
            "TF_CONFIG": json.dumps({"cluster": {"worker": hosts}, "task": {"type": "worker", "index": rank}}),
            "TF_CPP_MIN_LOG_LEVEL": "1",  # as in the image
        }
        for rank in range(len(ports))
    ]


LAUNCHER = LauncherKind(
    name="tf-job",
    manifests=manifests,
    operator="training",
    scheme="tfjob",
    starts="itself",
    local_variables=local_variables,
    rendezvous="TF_CONFIG: the name of each worker's Service; worker 0 is the chief",
    injects="TF_CONFIG, by the operator",
    restarts="the operator, pod by pod, on exit codes of 128 and above; it counts no starts: of `restarts`, only 0 has "
    "an effect",
    gang="PodGroup made by the operator, all pods",
    choose_when="TensorFlow programs under MultiWorkerMirroredStrategy; one process per pod",
)
