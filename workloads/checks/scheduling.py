"""TY6xx: whether the platform's operators and scheduler will start the run."""

from collections.abc import Iterator

from workloads.checks.registry import Problem, rule
from workloads.resolve import Run

_RANK_VARIABLES = {
    *("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"),
    *("NODE_RANK", "JOB_COMPLETION_INDEX"),
}


@rule("TY601")
def rank_variables_are_the_launchers(run: Run) -> Iterator[Problem]:
    """`env` sets a variable that the launcher or torchrun sets for each pod by itself.

    The same value in every pod makes two rank 0s, or a master that nobody answers for.
    """
    for name in run.experiment.env:
        if name in _RANK_VARIABLES or name.startswith(("PET_", "TRAINYARD_")):
            yield Problem(("env", name), f"{name} is set for each pod by the launcher", "drop it")


@rule("TY602")
def operator_is_installed(run: Run) -> Iterator[Problem]:
    """The platform lacks the operator, or the operator the scheme, that the launcher's job kind needs.

    The API server would refuse the object, or accept it with nobody there to start it.
    """
    training = run.platform.operators.training
    if run.experiment.launcher == "pytorch-job":
        if training is None:
            message = f"platform `{run.experiment.platform}` installs no Training Operator"
            yield Problem(("launcher",), message, "add `operators.training` to the platform, or use `indexed-job`")
        elif "pytorchjob" not in training.schemes:
            message = "the platform's Training Operator does not serve PyTorchJobs"
            yield Problem(("launcher",), message, "add pytorchjob to `operators.training.schemes` of the platform")


@rule("TY603")
def gang_fits_the_quota(run: Run) -> Iterator[Problem]:
    """The gang asks for more than its team's quota.

    The operator would create some of the pods and be refused the rest.
    """
    per_pod = {
        "requests.cpu": run.resources.cpu,
        "requests.nvidia.com/gpu": run.resources.gpu,
        "requests.vpc.amazonaws.com/efa": run.resources.efa,
        "requests.aws.amazon.com/neuron": run.resources.neuron,
        "pods": 1,
    }
    for resource, asked in per_pod.items():
        limit = run.team.quota.get(resource)
        if isinstance(limit, int | float) and asked * run.experiment.nodes > limit:
            total = asked * run.experiment.nodes
            yield Problem(
                ("nodes",),
                f"{run.experiment.nodes} pods ask for {total:g} {resource}; team `{run.team.name}` may have {limit:g}",
                f"lower `nodes` to {int(limit // asked)}, or raise the quota",
            )
