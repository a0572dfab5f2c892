"""What an experiment costs: the nodes it fills, at the price list of one day."""

from dataclasses import dataclass

from infra.instances import PRICED_ON, PRICED_REGION
from workloads.resolve import Run


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Dollars; None where a price is not known."""

    usd_per_hour: float | None
    usd_per_run: float | None
    """At most: for `max_hours`. None for a run without that limit."""
    priced_at: str = f"{PRICED_REGION} on demand, {PRICED_ON}"


def cost_of(run: Run) -> Cost:
    """Whole nodes are counted: nobody else's pods can be relied on to share them. Spot nodes cost less than this."""
    if run.shape.usd_per_hour is None or run.num_nodes is None:
        return Cost(usd_per_hour=None, usd_per_run=None)
    usd_per_hour = run.num_nodes * run.shape.usd_per_hour
    hours = run.experiment.max_hours
    return Cost(
        usd_per_hour=round(usd_per_hour, 2),
        usd_per_run=None if hours is None else round(usd_per_hour * hours, 2),
    )
