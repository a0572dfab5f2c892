"""`mnist-torchx`: pods that meet in the platform's etcd, or at the first of them, and meet again after a loss."""

import json
from collections.abc import Callable

import pytest

from tests.cluster.conftest import LocalRun
from tests.cluster.experiments import NAMESPACE, metrics, running, until_running, until_succeeded
from tests.cluster.kube import get, kubectl, pods, until
from tests.cluster.pulumi_cli import Checkout

pytestmark = pytest.mark.cluster

STACK = "mnist-torchx"
_KEYS = "/api/v1/namespaces/etcd/services/etcd:client/proxy/v2/keys"
# The rank is a child of torchrun, which the image's first process may have started in turn.
_KILL_THE_RANK = """
import os, pathlib, signal
for status in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    if status.read_bytes().endswith(b"training.mnist\\0") or b"-m\\0training.mnist\\0" in status.read_bytes():
        os.kill(int(status.parent.name), signal.SIGKILL)
"""


def test_its_pods_meet_in_etcd_and_train_to_the_figure_of_the_demo(platform: Checkout, mnist_here: LocalRun) -> None:
    with running(platform, STACK) as run:
        until_succeeded(run)
        assert rendezvous(run) == [f"{run}-0"]
        assert accuracy(platform, run) == pytest.approx(accuracy_of(mnist_here), abs=0.01)
        assert platform.changes(STACK) == {}
        platform.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", STACK)
    assert not pods(run)
    assert not get("podgroups", "-n", NAMESPACE)


@pytest.mark.slow
def test_its_pods_meet_at_the_first_of_them_when_told_to(platform: Checkout, mnist_here: LocalRun) -> None:
    with running(platform, STACK, "rendezvous=c10d") as run:
        until_succeeded(run)
        assert rendezvous(run) == []
        assert accuracy(platform, run) == pytest.approx(accuracy_of(mnist_here), abs=0.01)


def delete_the_pod(pod: str) -> None:
    kubectl("delete", "pod", pod, "-n", NAMESPACE, "--grace-period=0", "--force")


def kill_the_rank(pod: str) -> None:
    """torchrun then closes the rendezvous for good, and ends with 138."""
    kubectl("exec", pod, "-n", NAMESPACE, "--", "python", "-c", _KILL_THE_RANK)


@pytest.mark.slow
@pytest.mark.parametrize("rendezvous_by", ["etcd", "c10d"])
@pytest.mark.parametrize("lose", [delete_the_pod, kill_the_rank])
def test_after_a_loss_all_pods_start_again_meet_anew_and_go_on(
    platform: Checkout, lose: Callable[[str], None], rendezvous_by: str
) -> None:
    settings = ["args.steps=1500", "checkpoint.every_steps=100", f"rendezvous={rendezvous_by}"]
    with running(platform, STACK, *settings) as run:
        until_running(run, 2)
        until(lambda: [line for line in metrics(platform, STACK, run) if line["checkpoint"]], within_s=240)
        lose(f"{run}-worker-1-0")
        until_succeeded(run)
        assert rendezvous(run) == ([f"{run}-0", f"{run}-1"] if rendezvous_by == "etcd" else [])
        told = metrics(platform, STACK, run)
    steps = [line["step"] for line in told]
    assert steps == sorted(set(steps)), "a step was logged twice"
    assert steps[-1] == 1500


def rendezvous(run: str) -> list[str]:
    """What etcd holds of the run: the rendezvous of each of its starts, by id."""
    folder = json.loads(kubectl("get", "--raw", f"{_KEYS}/torch/elastic/rendezvous"))
    ids = [node["key"].rpartition("/")[2] for node in folder["node"].get("nodes", [])]
    return sorted(identifier for identifier in ids if identifier.startswith(run))


def accuracy(platform: Checkout, run: str) -> float:
    return float(metrics(platform, STACK, run)[-1]["accuracy"])


def accuracy_of(here: LocalRun) -> float:
    return float(here.metrics[-1]["accuracy"])


@pytest.mark.slow
def test_another_number_of_members_makes_a_new_etcd_that_outlives_the_loss_of_one(platform: Checkout) -> None:
    members = "trainyard:platform.operators.etcd.members"
    platform.pulumi("config", "set", "--path", members, "3", "--stack", "local")
    try:
        platform.up("local")
        (found,) = get("statefulset", "-n", "etcd", "etcd")
        assert found["status"]["readyReplicas"] == 3
        with running(platform, STACK, "args.steps=1500") as run:
            until_running(run, 2)
            until(lambda: rendezvous(run), within_s=60)
            kubectl("delete", "pod", "etcd-0", "-n", "etcd", "--grace-period=0", "--force")
            until_succeeded(run)
            # Nobody had to start again.
            assert rendezvous(run) == [f"{run}-0"]
    finally:
        platform.restore("local")
        platform.up("local")
    assert not get("pvc", "-n", "etcd")
