"""`mpi-job`: an MPIJob (v2beta1) of the MPI operator, for programs that mpirun starts.

The workers run an ssh server and nothing else; once all of them answer, the operator makes the launcher, a small pod
whose mpirun starts the ranks in them. All output is the launcher's. A launcher that fails is made anew by its Job, and
waits for the workers; a worker that is deleted is made anew by the operator, under its name.
"""

from typing import Any

from workloads.flags import arguments, program_flags
from workloads.launchers.kind import LauncherKind
from workloads.launchers.kubeflow import run_policy
from workloads.pod import Manifest, labels, metadata, pod_spec
from workloads.resolve import Run

# Named in training/images/mpi/Dockerfile too, in ssh's own configuration.
_SSH_PORT = 2222
_SSH_KEYS = "/etc/mpi-ssh"
_STARTED_WITHIN_S = 120
# mpirun and an ssh client for each worker. No CPU limit; the memory is a few dozen MiB and some for a large gang.
_LAUNCHER_RESOURCES = {"requests": {"cpu": "10m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}


def manifests(run: Run, name: str) -> list[Manifest]:
    return [
        {
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": metadata(run, name),
            "spec": {
                "mpiImplementation": "OpenMPI",
                "slotsPerWorker": run.processes_per_node,
                "sshAuthMountPath": _SSH_KEYS,
                # A launcher that is there from the start would take a worker's place in the gang.
                "launcherCreationPolicy": "WaitForWorkersReady",
                "runPolicy": run_policy(run),
                "mpiReplicaSpecs": {"Launcher": _launcher(run, name), "Worker": _worker(run, name)},
            },
        }
    ]


def _launcher(run: Run, name: str) -> Manifest:
    spec = pod_spec(run, name, container="launcher", variables=_variables(name))
    (container,) = spec["containers"]
    container["resources"] = _LAUNCHER_RESOURCES
    if run.experiment.module:
        flags = arguments(program_flags(run.experiment))
        container["command"] = ["python", "-m", "training.mpi", "launch", run.experiment.module, *flags]
    # Any node does, and those of the group its workers may fill to the brim.
    spec = {key: value for key, value in spec.items() if key not in ("nodeSelector", "tolerations")}
    return {"replicas": 1, "restartPolicy": "Never", "template": _template(run, name, spec)}


def _worker(run: Run, name: str) -> Manifest:
    spec = pod_spec(run, name, container="worker", variables=_variables(name))
    (container,) = spec["containers"]
    container["command"] = ["python", "-m", "training.mpi", "serve"]
    # Once: every look is a line in ssh's log.
    probe = {"tcpSocket": {"port": _SSH_PORT}, "periodSeconds": 1, "failureThreshold": _STARTED_WITHIN_S}
    container["startupProbe"] = probe
    # The operator leaves a failed pod as it is, so that the kubelet has to start the container again.
    return {"replicas": run.experiment.nodes, "restartPolicy": "OnFailure", "template": _template(run, name, spec)}


def _template(run: Run, name: str, spec: Manifest) -> Manifest:
    return {"metadata": {"labels": labels(run, name)}, "spec": spec}


def _variables(name: str) -> list[dict[str, Any]]:
    """Rank 0 is on the first host of the operator's file."""
    return [{"name": "MASTER_ADDR", "value": f"{name}-worker-0.{name}"}]


LAUNCHER = LauncherKind(
    name="mpi-job",
    manifests=manifests,
    operator="mpi",
    starts="mpirun",
    rendezvous="mpirun over ssh, with the operator's file of hosts; rank 0 is on the first worker",
    injects="OMPI_* by mpirun, from which `training.mpi` sets torch's; MASTER_ADDR is set here",
    restarts="the launcher's Job, all ranks at once; it cannot tell exit code 2 apart, and tries that again too",
    gang="PodGroup made by the operator, all workers; the launcher follows them",
    choose_when="programs that want mpirun; an image with Open MPI and ssh, such as `mpi`",
)
