"""`torchx`: an application of TorchX, which its Kubernetes scheduler turns into a Job of Volcano.

TorchX makes a task of each pod, with labels by which its own commands (`torchx status`, `torchx log`) know the run. The
rest of a pod is ours: TorchX knows no security context or toleration, leaves /dev/shm without a bound, limits CPUs, and
requests a gigabyte of memory less than the limit. So are restarts: its own cannot tell exit code 2 apart, and it warns
of them itself.

The pods meet in etcd, or at the first of them (c10d); torchrun ranks them by their addresses.
"""

from typing import Any, cast

from infra.addresses import ETCD
from workloads.launchers.kind import LauncherKind
from workloads.launchers.names import wait_for_master
from workloads.launchers.volcano import restarts, time_limit
from workloads.pod import Manifest, labels, metadata, pod_spec
from workloads.resolve import Run

_ROLE = "worker"
_PORT = 29400  # torchrun's default for c10d
# Counts the starts of the run. A rendezvous is closed for good when a node crashes, and etcd remembers: the next start
# needs another.
_START = "TRAINYARD_START"
_START_OF_POD = {"fieldRef": {"fieldPath": "metadata.annotations['volcano.sh/job-version']"}}


def manifests(run: Run, name: str) -> list[Manifest]:
    spec = pod_spec(run, name, container="trainer", variables=_rendezvous(run, name))
    (trainer,) = spec["containers"]
    trainer["command"] = [*time_limit(run), *trainer["command"]]
    spec["restartPolicy"] = "Never"
    if not meets_in_etcd(run):
        spec["initContainers"] = [wait_for_master(_first_pod(name), trainer)]

    job = _torchx_job(run, trainer)
    job["metadata"] = metadata(run, name)
    job["spec"] |= {"minAvailable": run.experiment.nodes, **restarts(run)}
    job["spec"]["plugins"]["svc"].append("--disable-network-policy=true")  # every run has one of ours
    for task in job["spec"]["tasks"]:
        made = task["template"]
        made["metadata"]["labels"] |= labels(run, name)
        made["spec"] = spec | {"containers": [trainer | _program(made["spec"])]}
        # Volcano's webhook rewrites the tasks that lack one of these two; no container is ever started twice.
        task |= {"minAvailable": 1, "maxRetry": 1}
    return [job]


def meets_in_etcd(run: Run) -> bool:
    asked = run.experiment.rendezvous
    return asked == "etcd" or (asked == "auto" and run.platform.operators.etcd.enabled)


def _torchx_job(run: Run, trainer: Manifest) -> Manifest:
    """What TorchX makes of the application, under a name of its own with random letters."""
    # Here, not above: a second of imports, which whoever uses no TorchX is spared.
    from torchx.schedulers.kubernetes_scheduler import app_to_resource, sanitize_for_serialization
    from torchx.specs.api import AppDef, Role

    entrypoint, *arguments = trainer["command"]
    role = Role(
        name=_ROLE,
        image=trainer["image"],
        entrypoint=entrypoint,
        args=[_literal(argument) for argument in arguments],
        env={variable["name"]: _literal(variable["value"]) for variable in trainer["env"]},
        num_replicas=run.experiment.nodes,
    )
    job = app_to_resource(
        AppDef(name=run.stack, roles=[role]),
        queue=run.queue,
        service_account=None,
        priority_class=run.experiment.priority,
    )
    return cast(Manifest, sanitize_for_serialization(job))


def _literal(text: str) -> str:
    """TorchX fills `${replica_id}` and its like in; what is written here is meant as it is."""
    return text.replace("$", "$$")


def _program(made: Manifest) -> Manifest:
    """Of TorchX's pod, what it has filled in."""
    (container,) = made["containers"]
    start = {"name": _START, "valueFrom": _START_OF_POD}
    return {"command": container["command"], "env": [start, *container["env"]]}


def _rendezvous(run: Run, name: str) -> list[dict[str, Any]]:
    """What torchrun reads."""
    backend, endpoint = ("etcd-v2", ETCD) if meets_in_etcd(run) else ("c10d", f"{_first_pod(name)}:{_PORT}")
    variables = {
        "PET_NNODES": str(run.experiment.nodes),
        "PET_NPROC_PER_NODE": str(run.processes_per_node),
        "PET_RDZV_BACKEND": backend,
        "PET_RDZV_ENDPOINT": endpoint,
        "PET_RDZV_ID": f"{name}-$({_START})",
    }
    return [{"name": variable, "value": value} for variable, value in variables.items()]


def _first_pod(name: str) -> str:
    """TorchX numbers its tasks, and Volcano the pods of a task, of which each has one."""
    return f"{name}-{_ROLE}-0-0.{name}"


LAUNCHER = LauncherKind(
    name="torchx",
    manifests=manifests,
    operator="volcano",
    rendezvous="etcd of the platform, or c10d at the first pod (`rendezvous`)",
    injects="PET_*, set here; torchrun ranks the pods when they meet",
    restarts="Volcano, the whole gang at once, evictions count; exit code 2 ends the run at once",
    gang="PodGroup made by Volcano, all pods",
    choose_when="teams that watch their runs with `torchx`; pods that shall meet outside of themselves, in etcd",
)
