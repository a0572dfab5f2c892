"""TY7xx: whether a run, or a platform, stays within what it may cost."""

from collections.abc import Iterator

from infra.prices import platform_cost
from workloads.checks.registry import Problem, platform_rule, rule
from workloads.cost import cost_of, platform_cost_of
from workloads.resolve import Run
from workloads.stacks import PlatformStack


@rule("TY701")
def run_stays_within_its_budget(run: Run) -> Iterator[Problem]:
    """The run may cost more than its budget allows, or nobody can tell."""
    budget = run.experiment.budget
    if budget is None:
        return
    cost, limits = cost_of(run), run.num_time_limits
    if cost.usd_per_hour is None:
        message = f"the price of {run.shape.name} is not known"
        yield Problem(("budget",), message, "drop `budget`, or use a type with a price")
    elif cost.usd_per_run is None:
        message = f"${cost.usd_per_hour:.2f} an hour without an end"
        yield Problem(("max_hours",), message, f"set `max_hours: {budget.max_usd / cost.usd_per_hour / limits:.1f}`")
    elif cost.usd_per_run > budget.max_usd:
        yield Problem(
            ("budget", "max_usd"),
            f"{run.most_hours:g} hours at ${cost.usd_per_hour:.2f} are ${cost.usd_per_run:.2f}, above "
            f"${budget.max_usd:.2f}",
            f"set `max_hours: {budget.max_usd / cost.usd_per_hour / limits:.1f}`, or raise the budget",
        )


@platform_rule("TY702")
def platform_stays_within_its_budget(stack: PlatformStack) -> Iterator[Problem]:
    """The platform may cost more per hour than its budget with every group at its maximum, or nobody can tell."""
    budget = stack.config.budget
    if budget is None:
        return
    most = platform_cost_of(stack).usd_per_hour_at_most
    key = ("budget", "max_usd_per_hour")
    if most is None:
        unknown = "; ".join(platform_cost(stack.config, stack.file.region).unknown)
        yield Problem(key, f"the most it may cost is not known: {unknown}", "drop the budget, or what has no price")
    elif most > budget.max_usd_per_hour:
        yield Problem(
            key,
            f"${most:,.2f} per hour with every group at its maximum, above ${budget.max_usd_per_hour:,.2f}",
            "lower the `max` of node groups, or raise the budget",
        )
