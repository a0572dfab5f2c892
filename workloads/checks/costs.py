"""TY7xx: whether a run stays within what it may cost."""

from collections.abc import Iterator

from workloads.checks.registry import Problem, rule
from workloads.cost import cost_of
from workloads.resolve import Run


@rule("TY701")
def run_stays_within_its_budget(run: Run) -> Iterator[Problem]:
    """The run may cost more than its budget allows, or nobody can tell."""
    budget = run.experiment.budget
    if budget is None:
        return
    cost = cost_of(run)
    if cost.usd_per_hour is None:
        message = f"the price of {run.shape.name} is not known"
        yield Problem(("budget",), message, "drop `budget`, or use a type with a price")
    elif cost.usd_per_run is None:
        message = f"${cost.usd_per_hour:.2f} an hour without an end"
        yield Problem(("max_hours",), message, f"set `max_hours: {budget.max_usd / cost.usd_per_hour:.1f}`")
    elif cost.usd_per_run > budget.max_usd:
        yield Problem(
            ("budget", "max_usd"),
            f"{run.experiment.max_hours:g} hours at ${cost.usd_per_hour:.2f} are ${cost.usd_per_run:.2f}, above "
            f"${budget.max_usd:.2f}",
            f"set `max_hours: {budget.max_usd / cost.usd_per_hour:.1f}`, or raise the budget",
        )
