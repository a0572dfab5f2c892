"""What the job kinds of Kubeflow have in common: when a run ends, how often it is restarted, and its gang."""

from workloads.pod import Manifest, uses_volcano
from workloads.resolve import Run


def run_policy(run: Run) -> Manifest:
    """The `runPolicy`. The gang is one pod for each node: mpirun's own, which the kind would count too, holds none."""
    policy: Manifest = {
        "backoffLimit": run.experiment.restarts,
        # Finished pods stay for their logs; those still running have nothing left to do, and would hold their nodes.
        "cleanPodPolicy": "Running",
    }
    if run.experiment.max_hours:
        policy["activeDeadlineSeconds"] = round(run.experiment.max_hours * 3600)
    if uses_volcano(run.platform):
        policy["schedulingPolicy"] = {"minAvailable": run.experiment.nodes, "queue": run.queue}
        if run.experiment.priority:
            policy["schedulingPolicy"]["priorityClass"] = run.experiment.priority
    return policy
