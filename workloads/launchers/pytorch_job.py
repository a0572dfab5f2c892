"""`pytorch-job`: a PyTorchJob of the Kubeflow Training Operator v1.

The operator gives each pod its rank and the master's address as PET_* variables, which torchrun reads by itself, and
makes the Volcano PodGroup. Restarts are the operator's: exit codes of 128 and above are started again, lower ones are
final, which is why `training.launch` keeps the two apart.

With `elastic`, no pod is the master: torchrun's own rendezvous, in the first worker, numbers those that are there. When
one is taken away, all ranks save and those that are left go on; when one comes, likewise.
"""

from typing import Any

from workloads.config import Elastic
from workloads.launchers.kind import LauncherKind
from workloads.launchers.kubeflow import replica, run_policy
from workloads.launchers.names import wait_for_master
from workloads.pod import Manifest, command, metadata
from workloads.resolve import Run

# The operator injects its variables into the container of this name, and only there.
_CONTAINER = "pytorch"


def manifests(run: Run, name: str) -> list[Manifest]:
    elastic = run.experiment.elastic
    form = _elastic(run, name, elastic) if elastic else _fixed(run, name)
    return [
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": metadata(run, name),
            "spec": {"nprocPerNode": str(run.processes_per_node), "runPolicy": run_policy(run), **form},
        }
    ]


def _fixed(run: Run, name: str) -> dict[str, Any]:
    replicas = {"Master": _pods(run, name, 1)}
    if run.experiment.nodes > 1:
        replicas["Worker"] = _pods(run, name, run.experiment.nodes - 1)
    return {"pytorchReplicaSpecs": replicas}


def _elastic(run: Run, name: str, elastic: Elastic) -> dict[str, Any]:
    workers = _pods(run, name, run.experiment.nodes)
    pod = workers["template"]["spec"]
    # With a master, the operator does this by itself. The first worker knows its own name at once.
    pod["initContainers"] = [wait_for_master(f"{name}-worker-0", pod["containers"][0])]
    return {
        "elasticPolicy": {
            "minReplicas": elastic.min,
            "maxReplicas": elastic.max,
            "rdzvBackend": "c10d",
            "rdzvId": name,
            "maxRestarts": run.experiment.restarts,
        },
        "pytorchReplicaSpecs": {"Worker": workers},
    }


def _pods(run: Run, name: str, count: int) -> Manifest:
    return replica(run, name, count, container=_CONTAINER, command=command(run))


LAUNCHER = LauncherKind(
    name="pytorch-job",
    manifests=manifests,
    operator="training",
    scheme="pytorchjob",
    rendezvous="static: the master's Service name; with `elastic`, c10d in the first worker",
    injects="PET_*, by the operator",
    restarts="the operator, pod by pod, on exit codes of 128 and above; it counts no starts: of `restarts`, only 0 has "
    "an effect. With `elastic`, torchrun starts the ranks of the pods that are left, up to `restarts` times in each",
    elasticity="`elastic`: loses and gains workers from step to step; with its first worker, it starts again whole",
    is_elastic=True,
    gang="PodGroup made by the operator, all pods; with `elastic`, `min` of them",
    choose_when="the default for torchrun programs where the Training Operator is installed",
)
