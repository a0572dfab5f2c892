"""`pytorch-job`: a PyTorchJob of the Kubeflow Training Operator v1.

The operator gives each pod its rank and the master's address as PET_* variables, which torchrun reads by itself, and
makes the Volcano PodGroup. Restarts are the operator's: exit codes of 128 and above are started again, lower ones are
final, which is why `training.launch` keeps the two apart.
"""

from workloads.launchers.kind import LauncherKind
from workloads.launchers.kubeflow import run_policy
from workloads.pod import Manifest, labels, metadata, pod_spec
from workloads.resolve import Run

# The operator injects its variables into the container of this name, and only there.
_CONTAINER = "pytorch"


def manifests(run: Run, name: str) -> list[Manifest]:
    replica = {
        "restartPolicy": "ExitCode",
        "template": {
            "metadata": {"labels": labels(run, name)},
            "spec": pod_spec(run, name, container=_CONTAINER, variables=[]),
        },
    }
    replicas = {"Master": {"replicas": 1, **replica}}
    if run.experiment.nodes > 1:
        replicas["Worker"] = {"replicas": run.experiment.nodes - 1, **replica}
    return [
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": metadata(run, name),
            "spec": {
                "nprocPerNode": str(run.processes_per_node),
                "runPolicy": run_policy(run),
                "pytorchReplicaSpecs": replicas,
            },
        }
    ]


LAUNCHER = LauncherKind(
    name="pytorch-job",
    manifests=manifests,
    operator="training",
    scheme="pytorchjob",
    rendezvous="static: the master's Service name",
    injects="PET_*, by the operator",
    restarts="the operator, pod by pod, on exit codes of 128 and above",
    elasticity="none",
    gang="PodGroup made by the operator, all pods",
    choose_when="the default for torchrun programs where the Training Operator is installed",
)
