"""`mnist` on two pods, by each launcher: from `pulumi up` to Succeeded, and away again."""

import json

import pytest

from tests.cluster.conftest import LocalRun
from tests.cluster.experiments import (
    NAMESPACE,
    environment,
    gangs,
    metrics,
    running,
    until_running,
    until_succeeded,
    volume,
)
from tests.cluster.kube import get, kubectl, pods, until
from tests.cluster.pulumi_cli import Checkout

pytestmark = pytest.mark.cluster

STEPS = 400  # as Pulumi.mnist.yaml says
# mpirun has a pod of its own, beside the two that train.
PODS = {
    "mnist": 2,
    "mnist-elastic": 2,
    "mnist-indexed": 2,
    "mnist-mpi": 3,
    "mnist-volcano": 2,
    "mnist-trainjob": 2,
}


@pytest.mark.parametrize("stack", PODS)
def test_it_trains_to_the_figure_of_the_demo(platform: Checkout, mnist_here: LocalRun, stack: str) -> None:
    with running(platform, stack) as run:
        until_running(run, PODS[stack])
        (group,) = gangs(run)
        assert group["spec"]["minMember"] == (1 if stack == "mnist-elastic" else 2)
        assert {pod["spec"]["schedulerName"] for pod in pods(run)} == {"volcano"}
        assert platform.changes(stack) == {}
        if stack == "mnist-mpi":
            assert [job["metadata"]["name"] for job in get("jobs.batch", "-n", NAMESPACE)] == [f"{run}-launcher"]

        until_succeeded(run)
        told = metrics(platform, stack, run)
        assert told[-1]["step"] == STEPS
        assert told[-1]["accuracy"] == pytest.approx(mnist_here.metrics[-1]["accuracy"], abs=0.01)
        assert (volume() / "ckpt" / stack).is_dir()
        assert platform.changes(stack) == {}
        platform.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", stack)
    assert not pods(run)
    assert not get("podgroups", "-n", NAMESPACE)


def test_torchrun_finds_the_variables_of_the_first_seed(platform: Checkout) -> None:
    with running(platform, "mnist", "args.steps=5000") as run:
        until_running(run, 2)
        master = environment(f"{run}-master-0")
        worker = environment(f"{run}-worker-0")
    for variables in (master, worker):
        assert variables["MASTER_PORT"] == variables["PET_MASTER_PORT"] == "23456"
        assert variables["PET_MASTER_ADDR"] == f"{run}-master-0"
        assert variables["PET_NNODES"] == "2"
        assert variables["PET_NPROC_PER_NODE"] == "1"
        assert variables["WORLD_SIZE"] == "2"
        assert variables["PYTHONUNBUFFERED"] == "1"
    assert (master["RANK"], worker["RANK"]) == ("0", "1")
    assert (master["PET_NODE_RANK"], worker["PET_NODE_RANK"]) == ("0", "1")
    assert worker["MASTER_ADDR"] == f"{run}-master-0"


def test_an_edit_makes_a_new_run_that_goes_on_from_the_old_ones_checkpoint(platform: Checkout) -> None:
    with running(platform, "mnist", "args.steps=200") as first:
        until_succeeded(first)
        platform.pulumi("config", "set", "--path", "trainyard:experiment.args.steps", "300", "--stack", "mnist")
        platform.up("mnist")
        second = platform.outputs("mnist")["run"]
        assert second != first
        until_succeeded(second)
        assert not pods(first)
        steps = [line["step"] for line in metrics(platform, "mnist", second)]
        assert min(steps) > 200
        assert max(steps) == 300


# A minute each: the rest is for `make test-full`.
_ALWAYS = {("mnist", 1), ("mnist-indexed", 0)}


@pytest.mark.parametrize(
    ("stack", "index"),
    [
        pytest.param(stack, index, marks=() if (stack, index) in _ALWAYS else pytest.mark.slow)
        for stack in PODS
        for index in (0, 1)
    ],
)
def test_a_killed_pod_costs_no_more_than_the_steps_since_the_last_checkpoint(
    platform: Checkout, stack: str, index: int
) -> None:
    with running(platform, stack, "args.steps=1500", "checkpoint.every_steps=100") as run:
        until_running(run, PODS[stack])
        until(lambda: [line for line in metrics(platform, stack, run) if line["checkpoint"]], within_s=120)
        victim = pods(run)[index]["metadata"]["name"]
        kubectl("delete", "pod", victim, "-n", NAMESPACE, "--grace-period=0", "--force")
        until_succeeded(run)
        told = metrics(platform, stack, run)
    steps = [line["step"] for line in told]
    assert steps == sorted(set(steps)), "a step was logged twice"
    assert steps[-1] == 1500


def test_the_program_says_what_is_wrong_with_the_platform(platform: Checkout) -> None:
    platform.select("mnist")
    platform.pulumi("config", "set", "--path", "trainyard:experiment.batch.global", "63", "--stack", "mnist")
    try:
        refused = platform.pulumi("up", "--yes", "--skip-preview", "--stack", "mnist", check=False)
    finally:
        platform.pulumi("stack", "rm", "--yes", "--preserve-config", "mnist")
    assert refused.returncode != 0
    assert "TY3" in refused.stdout + refused.stderr
    assert json.loads(kubectl("get", "pods", "-n", NAMESPACE, "-o", "json"))["items"] == []
