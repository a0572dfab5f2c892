"""An elastic run on real pods: it goes on with the worker that is left, and takes back the one that returns."""

import pytest

from tests.cluster.experiments import NAMESPACE, metrics, running, until_running, until_succeeded
from tests.cluster.kube import kubectl, logs, pods, until
from tests.cluster.pulumi_cli import Checkout

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

STACK = "mnist-elastic"
STEPS = 12_000


def test_a_lost_worker_comes_back_into_the_run(platform: Checkout) -> None:
    with running(platform, STACK, f"args.steps={STEPS}") as run:
        until_running(run, 2)
        first = pods(run)[0]["metadata"]["name"]
        until(lambda: _told(first) == ["2 nodes"], within_s=120, what=lambda: logs(first))
        kubectl("delete", "pod", f"{run}-worker-1", "-n", NAMESPACE, "--wait=false")
        until(lambda: _told(first) == ["2 nodes", "1 node", "2 nodes"], within_s=180, what=lambda: logs(first))
        until_succeeded(run, within_s=500)
        assert pods(run)[0]["status"]["containerStatuses"][0]["restartCount"] == 0
        steps = [line["step"] for line in metrics(platform, STACK, run)]
    assert steps == sorted(set(steps))
    assert steps[-1] == STEPS


def _told(pod: str) -> list[str]:
    """How many nodes trained, in turn, as the log of the pod whose node is rank 0 has it."""
    words = "training on "
    return [line.partition(words)[2] for line in logs(pod).splitlines() if words in line]
