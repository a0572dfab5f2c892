"""TY6xx: whether the scheduler will ever find room for the run."""

from collections.abc import Iterator

from infra.config.quantities import amount
from workloads.checks.registry import Problem, platform_rule, rule
from workloads.resolve import Run
from workloads.stacks import PlatformStack

_GIB = 2**30


@rule("TY603")
def gang_fits_the_quota(run: Run) -> Iterator[Problem]:
    """The gang asks for more than its team's quota.

    The operator would create some of the pods and be refused the rest.
    """
    per_pod = {f"requests.{resource}": asked for resource, asked in _asked(run).items()} | {"pods": 1}
    beside = {"pods": 1} if run.experiment.launcher == "mpi-job" else {}  # its launcher
    for resource, quota in run.team.quota.items():
        asked, limit = per_pod.get(resource, 0), amount(quota)
        total = asked * run.experiment.nodes + beside.get(resource, 0)
        if asked and total > limit:
            yield Problem(
                ("nodes",),
                f"{run.experiment.nodes} pods ask for {_shown(resource, total)}; "
                f"team `{run.team.name}` may have {_shown(resource, limit)}",
                f"lower `nodes` to {int((limit - beside.get(resource, 0)) // asked)}, or raise the quota",
            )


@rule("TY611")
def gang_fits_the_queue(run: Run) -> Iterator[Problem]:
    """The gang asks for more than its queue may ever hold.

    Volcano would take the run and never start it.
    """
    volcano, per_pod = run.platform.operators.volcano, _asked(run)
    queues = {queue.name: queue.capability for queue in volcano.queues} if volcano else {}
    for resource, most in queues.get(run.queue, {}).items():
        asked, limit = per_pod.get(resource, 0), amount(most)
        if asked and asked * run.experiment.nodes > limit:
            yield Problem(
                ("nodes",),
                f"{run.experiment.nodes} pods ask for {_shown(resource, asked * run.experiment.nodes)}; "
                f"queue `{run.queue}` may hold {_shown(resource, limit)}",
                f"lower `nodes` to {int(limit // asked)}, or raise the queue's `capability`",
            )


@platform_rule("TY612", "warning")
def preemption_has_its_action(stack: PlatformStack) -> Iterator[Problem]:
    """A priority that may preempt, and a scheduler without the action for it.

    Its runs would wait as all others do.
    """
    volcano = stack.config.operators.volcano
    for index, priority in enumerate(stack.config.priorities):
        if priority.preempts and volcano and "preempt" not in volcano.actions:
            message = f"`operators.volcano.actions` lacks `preempt`, without which `{priority.name}` evicts nobody"
            yield Problem(("priorities", index, "preempts"), message, "add it, or drop `preempts`")


def _asked(run: Run) -> dict[str, float]:
    """What one pod asks for, by the resource's name and in its unit."""
    return {
        "cpu": run.resources.cpu,
        "memory": run.resources.memory_gib * _GIB,
        "nvidia.com/gpu": run.resources.gpu,
        "vpc.amazonaws.com/efa": run.resources.efa,
        "aws.amazon.com/neuron": run.resources.neuron,
    }


def _shown(resource: str, total: float) -> str:
    return f"{total / _GIB:g} GiB of {resource}" if resource.endswith("memory") else f"{total:g} {resource}"
