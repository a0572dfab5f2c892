"""What Volcano's own Jobs have in common, whoever writes them: how often a run is started, and when it is over."""

from workloads.pod import GRACE_S, Manifest
from workloads.resolve import Run

# Exit codes that no restart can mend: of training.launch for a wrong configuration, of `timeout` when time is up.
_CONFIGURATION_ERROR = 2
_TIMED_OUT = 124


def restarts(run: Run) -> Manifest:
    """The whole gang is started again: none of it outlives a peer."""
    final = [_CONFIGURATION_ERROR, *([_TIMED_OUT] if run.experiment.max_hours else [])]
    return {
        # Volcano gives up when it has counted this many failures, the first start's among them.
        "maxRetry": run.experiment.restarts + 1,
        # The first that fits an event decides, and every exit code but 0 is a PodFailed too.
        "policies": [
            *({"exitCode": code, "action": "TerminateJob"} for code in final),
            {"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"},
        ],
    }


def time_limit(run: Run) -> list[str]:
    """What to put before a command. A Volcano Job has no deadline, and a pod's own would look like any failure."""
    if not run.experiment.max_hours:
        return []
    limit_s = round(run.experiment.max_hours * 3600)
    # `--foreground`: the program gets the signal once, and passes it on to its children itself.
    return ["timeout", "--foreground", f"--kill-after={GRACE_S}", str(limit_s)]
