"""`volcano-job`: a Job of Volcano itself, whose plugins give the pods their names, ranks and gang.

The pod of rank 0 is the task `master`, the others are the task `worker`, as the pytorch plugin expects. A pod that
fails or is lost has the whole gang started again (RestartJob), for none of it outlives a peer; RestartTask would take
half of it, and before Volcano 1.11 nothing (volcano-sh/volcano#1866). The run is over when the master has succeeded,
which it does once the processes of every pod have.
"""

from typing import Any

from workloads.launchers.kind import LauncherKind
from workloads.launchers.names import wait_for_master
from workloads.launchers.volcano import restarts, time_limit
from workloads.pod import Manifest, labels, metadata, pod_spec
from workloads.resolve import Run

# The tasks' names that the pytorch plugin looks for unless told otherwise.
_MASTER = "master"
_WORKER = "worker"
# What torchrun reads, from what the pytorch plugin writes: counts and ranks of pods. Volcano adds its variables behind
# those of the pod, which therefore cannot refer to them; a command can, and `env` gives its place to the program.
_TORCHRUN = {
    "PET_NNODES": "WORLD_SIZE",
    "PET_NODE_RANK": "RANK",
    "PET_MASTER_ADDR": "MASTER_ADDR",
    "PET_MASTER_PORT": "MASTER_PORT",
}


def manifests(run: Run, name: str) -> list[Manifest]:
    nodes = run.experiment.nodes
    tasks = [_task(run, name, _MASTER, 1, policies=[{"event": "TaskCompleted", "action": "CompleteJob"}])]
    if nodes > 1:
        tasks.append(_task(run, name, _WORKER, nodes - 1))
    spec: Manifest = {
        "schedulerName": "volcano",
        "queue": run.queue,
        "minAvailable": nodes,
        "plugins": {
            # Names must resolve before any pod is ready: the pods wait for them. The run has a network policy already.
            "svc": ["--publish-not-ready-addresses=true", "--disable-network-policy=true"],
            "env": [],
            "pytorch": [],
        },
        **restarts(run),
        "tasks": tasks,
    }
    if run.experiment.priority:
        spec["priorityClassName"] = run.experiment.priority
    return [{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata(run, name), "spec": spec}]


def _task(run: Run, name: str, task: str, replicas: int, **extra: Any) -> Manifest:
    variables = [{"name": "PET_NPROC_PER_NODE", "value": str(run.processes_per_node)}]
    spec = pod_spec(run, name, container="trainer", variables=variables)
    (trainer,) = spec["containers"]
    ranks = [f"{variable}=$({source})" for variable, source in _TORCHRUN.items()]
    trainer["command"] = ["env", *ranks, *time_limit(run), *trainer["command"]]
    spec |= {
        "restartPolicy": "Never",
        "initContainers": [wait_for_master(f"{name}-{_MASTER}-0.{name}", trainer)],
    }
    return {
        "name": task,
        "replicas": replicas,
        # Volcano's webhook rewrites the tasks that lack one of these two; no container is ever started twice.
        "minAvailable": replicas,
        "maxRetry": 1,
        "template": {"metadata": {"labels": labels(run, name)}, "spec": spec},
        **extra,
    }


LAUNCHER = LauncherKind(
    name="volcano-job",
    manifests=manifests,
    operator="volcano",
    rendezvous="static: ranks and master of Volcano's pytorch plugin",
    injects="RANK, WORLD_SIZE and MASTER_* by the plugin, which `env` hands to torchrun as PET_*",
    restarts="Volcano, the whole gang at once, evictions count; exit code 2 ends the run at once",
    gang="PodGroup made by Volcano, all pods",
    choose_when="a cluster with Volcano alone, where its own tools (`vcctl job`) should see the run",
)
