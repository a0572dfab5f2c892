"""What a stack costs per hour: an experiment's nodes, a platform's bill, at the price list of one day."""

from dataclasses import dataclass

from infra.instances import PRICED_ON, PRICED_REGION
from infra.prices import platform_cost
from workloads.resolve import Run
from workloads.stacks import PlatformStack


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Dollars; None where a price is not known."""

    usd_per_hour: float | None
    usd_per_run: float | None
    """At most: for `max_hours`, or for that at each start (`num_time_limits`). None for a run without that limit."""
    usd_per_hour_at_most: float | None = None
    """A platform's with every group at its maximum; `usd_per_hour` is that at the minimum."""
    priced_at: str = f"{PRICED_REGION} on demand, {PRICED_ON}"


def cost_of(run: Run) -> Cost:
    """Whole nodes are counted: nobody else's pods can be relied on to share them. Spot nodes cost less than this."""
    if run.shape.usd_per_hour is None or run.num_nodes is None:
        return Cost(usd_per_hour=None, usd_per_run=None)
    usd_per_hour = run.num_nodes * run.shape.usd_per_hour
    hours = run.most_hours
    return Cost(
        usd_per_hour=_rounded(usd_per_hour),
        usd_per_run=None if hours is None else _rounded(usd_per_hour * hours),
    )


def platform_cost_of(stack: PlatformStack) -> Cost:
    """The bill of the platform itself, idle and at its limits."""
    cost = platform_cost(stack.config, stack.file.region)
    return Cost(
        usd_per_hour=_rounded(cost.usd_per_hour_at_minimum),
        usd_per_run=None,
        usd_per_hour_at_most=_rounded(cost.usd_per_hour_at_maximum),
        priced_at=cost.priced_at,
    )


def _rounded(usd: float | None) -> float | None:
    return None if usd is None else round(usd, 2)
