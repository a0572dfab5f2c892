"""The pod that every launcher starts: one container, sized for its nodes, unprivileged.

Launchers add what their job kind needs (rendezvous, ranks, restart policy) and nothing else.
"""

from typing import Any

from infra.config.platform import PlatformConfig
from infra.nodes import Nodes
from workloads.fabric import environment
from workloads.flags import arguments, program_flags
from workloads.images import image_reference
from workloads.resolve import PodResources, Run

Manifest = dict[str, Any]

# Spot takes a node 120 s after its notice; a run that gets SIGTERM then has that long to save.
GRACE_S = 120
# uid and gid of the images' user, and the group that owns mounted volumes.
_USER = 1000
_SCRATCH_GIB = 10  # /tmp: compile caches and torchrun's error files; the root file system is read-only


def labels(run: Run, name: str) -> dict[str, str]:
    """What `list`, `status` and network policies find a run's objects by."""
    return {
        "app.kubernetes.io/managed-by": "trainyard",
        "app.kubernetes.io/name": run.stack,
        "app.kubernetes.io/instance": name,
        "trainyard.dev/team": run.team.name,
        "trainyard.dev/launcher": run.experiment.launcher,
    }


def metadata(run: Run, name: str, **extra: Any) -> dict[str, Any]:
    return {"name": name, "namespace": run.team.namespace, "labels": labels(run, name), **extra}


def service_account_name(run: Run) -> str:
    """With a prefix: a stack may be named `default`, as the account is that every namespace has."""
    return f"experiment-{run.stack}"


def pod_spec(run: Run, name: str, *, container: str, variables: list[dict[str, Any]]) -> Manifest:
    """The pod of a run; `variables` are the launcher's, and come first."""
    experiment = run.experiment
    spec: Manifest = {
        "serviceAccountName": service_account_name(run),
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": GRACE_S,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": container,
                "image": image_reference(run),
                "imagePullPolicy": "IfNotPresent",
                "command": command(run),
                "env": variables + _environment(run, name),
                "resources": container_resources(run.resources),
                "securityContext": container_security(),
                "volumeMounts": [
                    {"name": "shm", "mountPath": "/dev/shm"},
                    {"name": "tmp", "mountPath": "/tmp"},
                    *({"name": volume.name, "mountPath": volume.mount} for volume in experiment.volumes),
                ],
            }
        ],
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": _mebibytes(run.resources.shm_gib)}},
            {"name": "tmp", "emptyDir": {"sizeLimit": f"{_SCRATCH_GIB}Gi"}},
            *(
                {"name": volume.name, "persistentVolumeClaim": {"claimName": volume.name}}
                for volume in experiment.volumes
            ),
        ],
        **_placement(run.nodes),
    }
    if run.platform.images.pull_secret:
        spec["imagePullSecrets"] = [{"name": run.platform.images.pull_secret.name}]
    if experiment.priority:
        spec["priorityClassName"] = experiment.priority
    if experiment.host_network:
        spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    if uses_volcano(run.platform):
        spec["schedulerName"] = "volcano"
    return spec


def command(run: Run) -> list[str]:
    """torchrun with our exit codes for a program of training/; a command of the user's own is left as it is."""
    program = run.experiment.program
    if not isinstance(program, str):
        return list(program.command)
    return ["python", "-m", "training.launch", program, *arguments(program_flags(run.experiment))]


def uses_volcano(platform: PlatformConfig) -> bool:
    return platform.operators.volcano is not None


def container_security() -> Manifest:
    """The `restricted` Pod Security Standard, and a root file system that cannot be written."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def container_resources(resources: PodResources) -> Manifest:
    memory = _mebibytes(resources.memory_gib)
    extended = {
        "nvidia.com/gpu": str(resources.gpu) if resources.gpu else None,
        "vpc.amazonaws.com/efa": str(resources.efa) if resources.efa else None,
        "aws.amazon.com/neuron": str(resources.neuron) if resources.neuron else None,
        "hugepages-2Mi": f"{resources.hugepages_2mi_mib}Mi" if resources.hugepages_2mi_mib else None,
    }
    given = {key: value for key, value in extended.items() if value is not None}
    return {
        "requests": {"cpu": f"{round(resources.cpu * 1000)}m", "memory": memory, **given},
        "limits": {"memory": memory, **given},
    }


def _environment(run: Run, name: str) -> list[dict[str, Any]]:
    variables = {
        "TRAINYARD_STACK": run.stack,
        "TRAINYARD_RUN": name,
        "TRAINYARD_GRACE_S": str(GRACE_S),
        "HOME": "/tmp",  # the user of the image has no writable home on a read-only root
        **environment(run),
        **run.experiment.env,
    }
    return [{"name": key, "value": value} for key, value in variables.items()]


def _placement(nodes: Nodes) -> Manifest:
    placement: Manifest = {}
    if nodes.labels:
        placement["nodeSelector"] = dict(sorted(nodes.labels.items()))
    if nodes.taints:
        placement["tolerations"] = [
            {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
            if taint.value
            else {"key": taint.key, "operator": "Exists", "effect": taint.effect}
            for taint in nodes.taints
        ]
    return placement


def _mebibytes(gib: float) -> str:
    return f"{round(gib * 1024)}Mi"
