"""How a Volcano Job ends when its pods do not succeed: by exit code, by the clock, by the number of starts."""

from typing import Any

import pytest

from tests.cluster.experiments import NAMESPACE, gangs, running, use_command
from tests.cluster.kube import get, phases, until
from tests.cluster.pulumi_cli import Checkout

pytestmark = pytest.mark.cluster

STACK = "mnist-volcano"


@pytest.mark.parametrize(
    ("script", "settings", "phase", "restarts"),
    [
        ("sleep 5; exit 2", [], "Terminated", 0),
        ("sleep 5; exit 138", ["restarts=0"], "Failed", 0),
        ("sleep 5; exit 138", ["restarts=1"], "Failed", 1),
        pytest.param("sleep 600", ["max_hours=0.002"], "Terminated", 0, marks=pytest.mark.slow),
    ],
)
def test_a_run_that_cannot_succeed_ends_and_leaves_its_logs(
    platform: Checkout, script: str, settings: list[str], phase: str, restarts: int
) -> None:
    use_command(platform, STACK, ["sh", "-c", script])
    with running(platform, STACK, *settings) as run:
        job = until(lambda: _finished(run), within_s=120, what=lambda: phases(run))
        assert job["status"]["state"]["phase"] == phase
        # Volcano counts the failure that it gives up at, too.
        assert job["status"].get("retryCount", 0) == restarts + (phase == "Failed")
        assert not gangs(run)
        until(lambda: set(phases(run)) == {"Failed"}, within_s=60, what=lambda: phases(run))


def _finished(run: str) -> dict[str, Any] | None:
    (job,) = get("jobs.batch.volcano.sh", "-n", NAMESPACE, run)
    return job if job["status"].get("state", {}).get("phase") in ("Completed", "Failed", "Terminated") else None
