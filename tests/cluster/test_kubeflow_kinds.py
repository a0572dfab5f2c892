"""Kinds of the Training Operator whose programs find each other without torchrun: to Succeeded, and past a lost pod."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.cluster.experiments import (
    NAMESPACE,
    environment,
    gangs,
    metrics,
    running,
    until_running,
    until_succeeded,
)
from tests.cluster.kube import get, kubectl, logs, pods, until
from tests.cluster.pulumi_cli import Checkout

pytestmark = pytest.mark.cluster

# The first run of a kind waits for its image: a gigabyte and more.
WITHIN_S = 300


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What a kind's run shows of itself."""

    first_pod: str
    """Of rank 0, behind the run's name."""
    short: tuple[str, ...]
    """Settings with which it is done soon."""
    long: tuple[str, ...]
    """Settings with which a pod can be lost in the middle."""
    least: float
    """Of the accuracy in its last line."""
    check_variables: Callable[[str, dict[str, str]], None]
    """Asserts what the operator gave to rank 0's pod of a run."""


def _check_tf_config(run: str, variables: dict[str, str]) -> None:
    config = json.loads(variables["TF_CONFIG"])
    hosts = [f"{run}-worker-{index}.{NAMESPACE}.svc:2222" for index in (0, 1)]
    assert config["cluster"] == {"worker": hosts}
    assert config["task"] == {"type": "worker", "index": 0}


def _check_rank_and_master(run: str, variables: dict[str, str]) -> None:
    assert (variables["RANK"], variables["WORLD_SIZE"]) == ("0", "2")
    assert (variables["MASTER_ADDR"], variables["MASTER_PORT"]) == (f"{run}-master-0", "9999")


def _check_paddle_variables(run: str, variables: dict[str, str]) -> None:
    """Worker 0 has its own address in place of its name, which would lead it to its Service."""
    assert (variables["PADDLE_RANK"], variables["PADDLE_NNODES"]) == ("0", "2")
    assert variables["PADDLE_MASTER"] == f"{variables['POD_IP_DUMMY']}:36543"
    other = environment(f"{run}-worker-1")
    assert (other["PADDLE_RANK"], other["PADDLE_MASTER"]) == ("1", f"{run}-worker-0:36543")


KINDS = {
    "tf-mnist": Kind(
        first_pod="worker-0",
        short=("args.steps=200",),
        long=("args.steps=3000", "checkpoint.every_steps=100"),
        least=0.95,
        check_variables=_check_tf_config,
    ),
    "xgboost": Kind(
        first_pod="master-0",
        short=(),
        long=("args.steps=60", "checkpoint.every_steps=5"),
        least=0.93,
        check_variables=_check_rank_and_master,
    ),
    "paddle": Kind(
        first_pod="worker-0",
        short=(),
        long=("args.steps=400", "checkpoint.every_steps=50"),
        least=0.95,
        check_variables=_check_paddle_variables,
    ),
}


@pytest.mark.parametrize("stack", KINDS)
def test_two_pods_train_as_one_gang_to_the_figure(platform: Checkout, stack: str) -> None:
    kind = KINDS[stack]
    with running(platform, stack, *kind.short) as run:
        until_running(run, 2, within_s=WITHIN_S)
        (group,) = gangs(run)
        assert group["spec"]["minMember"] == 2
        assert {pod["spec"]["schedulerName"] for pod in pods(run)} == {"volcano"}
        kind.check_variables(run, environment(f"{run}-{kind.first_pod}"))

        until_succeeded(run)
        assert platform.changes(stack) == {}
        last = logs(f"{run}-{kind.first_pod}", NAMESPACE).splitlines()[-1]
        found = re.search(r"accuracy=(\S+)", last)
        assert found, last
        assert float(found[1]) > kind.least
        assert metrics(platform, stack, run)[-1]["accuracy"] == pytest.approx(float(found[1]), abs=1e-5)
    assert not pods(run)
    assert not get("podgroups", "-n", NAMESPACE)


@pytest.mark.slow
@pytest.mark.parametrize("grace", ["orderly", "killed"])
@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("stack", KINDS)
def test_a_run_goes_on_from_its_checkpoint_when_a_pod_is_lost(
    platform: Checkout, stack: str, index: int, grace: str
) -> None:
    kind = KINDS[stack]
    with running(platform, stack, *kind.long) as run:
        until_running(run, 2, within_s=WITHIN_S)
        until(lambda: [line for line in metrics(platform, stack, run) if line["checkpoint"]], within_s=180)
        victim = pods(run)[index]["metadata"]["name"]
        force = ["--grace-period=0", "--force"] if grace == "killed" else []
        kubectl("delete", "pod", victim, "-n", NAMESPACE, *force)
        until_succeeded(run)
        told = metrics(platform, stack, run)
        assert "resumed from" in logs(f"{run}-{kind.first_pod}", NAMESPACE)
    steps = [line["step"] for line in told]
    assert steps == sorted(set(steps)), "a step was logged twice"
    assert told[-1]["accuracy"] > kind.least
