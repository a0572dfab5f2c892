"""A run that may preempt takes the nodes of another, which saves, waits as a gang, and goes on afterwards."""

import pytest

from tests.cluster.experiments import metrics, running, until_running, until_succeeded
from tests.cluster.kube import phases, pods, until
from tests.cluster.pulumi_cli import Checkout

pytestmark = pytest.mark.cluster

_STEPS = 1500
_NEVER = 10**6  # so that the only checkpoint is the one that SIGTERM asks for


# What each kind counts: a plain Job forgives evictions, the others take one for a failure.
@pytest.mark.slow
@pytest.mark.parametrize(("stack", "restarts"), [("mnist", 1), ("mnist-indexed", 0), ("mnist-volcano", 1)])
def test_a_preempted_run_saves_waits_whole_and_goes_on_where_it_was(
    platform: Checkout, stack: str, restarts: int
) -> None:
    settings = ["priority=low", f"restarts={restarts}", f"args.steps={_STEPS}", f"checkpoint.every_steps={_NEVER}"]
    with running(platform, stack, *settings) as low:
        until(lambda: metrics(platform, stack, low), within_s=120)
        urgent = "mnist" if stack != "mnist" else "mnist-indexed"
        with running(platform, urgent, "priority=high", "args.steps=100") as high:
            until_running(high, 2)
            stopped_at = metrics(platform, stack, low)[-1]["step"]
            until(lambda: phases(low) == ["Pending", "Pending"], within_s=60, what=lambda: phases(low))
            assert not any("nodeName" in pod["spec"] for pod in pods(low))
            until_succeeded(high)
        until_succeeded(low)
        told = metrics(platform, stack, low)
    steps = [line["step"] for line in told]
    assert 0 < stopped_at < _STEPS
    assert steps == sorted(set(steps)), "a step was taken twice"
    assert steps[-1] == _STEPS
