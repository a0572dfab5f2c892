"""What the job kinds of Kubeflow have in common: when a run ends, how often it is restarted, its gang, its replicas."""

from collections.abc import Sequence
from typing import Any

from workloads.flags import arguments, program_flags
from workloads.pod import Manifest, labels, pod_spec, uses_volcano
from workloads.resolve import Run


def run_policy(run: Run) -> Manifest:
    """The `runPolicy`. The gang is one pod for each node: mpirun's own, which the kind would count too, holds none.

    An elastic run starts with as few as it goes on with.
    """
    policy: Manifest = {
        "backoffLimit": run.experiment.restarts,
        # Finished pods stay for their logs; those still running have nothing left to do, and would hold their nodes.
        "cleanPodPolicy": "Running",
    }
    if run.experiment.max_hours:
        policy["activeDeadlineSeconds"] = round(run.experiment.max_hours * 3600)
    if uses_volcano(run.platform):
        policy["schedulingPolicy"] = {"minAvailable": run.fewest_nodes, "queue": run.queue}
        if run.experiment.priority:
            policy["schedulingPolicy"]["priorityClass"] = run.experiment.priority
    return policy


def solo_command(run: Run) -> list[str]:
    """A program of training/ as its pod's only process; a command of the user's own is left as it is."""
    program = run.experiment.program
    if not isinstance(program, str):
        return list(program.command)
    return ["python", "-m", "training.solo", program, *arguments(program_flags(run.experiment))]


def replica(
    run: Run, name: str, count: int, *, container: str, command: list[str], variables: Sequence[dict[str, Any]] = ()
) -> Manifest:
    """Pods of one role. The operator starts them again on exit codes of 128 and above; lower ones are final."""
    spec = pod_spec(run, name, container=container, variables=list(variables))
    spec["containers"][0]["command"] = command
    return {
        "replicas": count,
        "restartPolicy": "ExitCode",
        "template": {"metadata": {"labels": labels(run, name)}, "spec": spec},
    }
