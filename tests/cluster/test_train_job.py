"""How a TrainJob ends when its pods do not succeed, and what restarts it."""

import json
from typing import Any

import pytest

from tests.cluster.experiments import (
    NAMESPACE,
    environment,
    gangs,
    metrics,
    running,
    until_running,
    until_succeeded,
    use_command,
)
from tests.cluster.kube import get, kubectl, phases, pods, until
from tests.cluster.pulumi_cli import Checkout

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

STACK = "mnist-trainjob"


@pytest.mark.parametrize(
    ("script", "settings", "restarts"),
    [
        ("sleep 5; exit 2", [], 0),
        ("sleep 5; exit 138", ["restarts=1"], 1),
        ("sleep 600", ["max_hours=0.005"], 0),
    ],
)
def test_a_run_that_cannot_succeed_ends(platform: Checkout, script: str, settings: list[str], restarts: int) -> None:
    use_command(platform, STACK, ["sh", "-c", script])
    with running(platform, STACK, *settings) as run:
        until(lambda: _failed(run), within_s=180, what=lambda: phases(run))
        assert _job_set(run)["status"].get("restarts", 0) == restarts
        until(lambda: "Running" not in phases(run), within_s=60, what=lambda: phases(run))


def test_an_evicted_pod_takes_the_gang_with_it_and_costs_no_restart(platform: Checkout) -> None:
    settings = ["args.steps=1500", "checkpoint.every_steps=100", "restarts=0", "priority=normal"]
    with running(platform, STACK, *settings) as run:
        until_running(run, 2)
        (group,) = gangs(run)
        assert (group["spec"]["queue"], group["spec"]["priorityClassName"]) == ("default", "normal")
        first, second = (pod["metadata"]["name"] for pod in pods(run))
        _assert_torchruns(environment(first), run, rank=0)
        _assert_torchruns(environment(second), run, rank=1)

        until(lambda: [line for line in metrics(platform, STACK, run) if line["checkpoint"]], within_s=120)
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": second, "namespace": NAMESPACE}}
        address = f"/api/v1/namespaces/{NAMESPACE}/pods/{second}/eviction"
        kubectl("create", "--raw", address, "-f", "-", stdin=json.dumps(eviction))
        until_succeeded(run)
        assert _job_set(run)["status"]["restarts"] == 1
        steps = [line["step"] for line in metrics(platform, STACK, run)]
    assert steps == sorted(set(steps)), "a step was logged twice"
    assert steps[-1] == 1500


def _assert_torchruns(variables: dict[str, str], run: str, *, rank: int) -> None:
    given = {name: value for name, value in variables.items() if name.startswith("PET_")}
    assert given == {
        "PET_NNODES": "2",
        "PET_NPROC_PER_NODE": "1",
        "PET_NODE_RANK": str(rank),
        "PET_MASTER_ADDR": f"{run}-node-0-0.{run}",
        "PET_MASTER_PORT": "29500",
    }


def _failed(run: str) -> bool:
    (job,) = get("trainjobs", "-n", NAMESPACE, run)
    conditions = job.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Failed" and condition["status"] == "True" for condition in conditions)


def _job_set(run: str) -> dict[str, Any]:
    (found,) = get("jobsets", "-n", NAMESPACE, run)
    return found
