"""What `xgboost-job` and `paddle-job` promise, asserted on their manifests."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.workloads.conftest import rules
from workloads.checks.check import StackReport
from workloads.launchers.registry import LAUNCHERS, manifests_of
from workloads.pod import Manifest
from workloads.resolve import Run

Resolved = Callable[..., Run]
REPLICAS = {"xgboost-job": "xgbReplicaSpecs", "paddle-job": "paddleReplicaSpecs"}
CONTAINERS = {"xgboost-job": "xgboost", "paddle-job": "paddle"}
"""The names that the operator looks for."""

both = pytest.mark.parametrize("launcher", REPLICAS)


def job_of(run: Run) -> Manifest:
    (job,) = [manifest for manifest in manifests_of(run) if manifest["apiVersion"] == "kubeflow.org/v1"]
    spec: Manifest = job["spec"]
    return spec


def replicas_of(run: Run) -> dict[str, Any]:
    roles: dict[str, Any] = job_of(run)[REPLICAS[run.experiment.launcher]]
    return roles


@both
def test_all_pods_are_one_gang_which_exit_codes_restart(resolved: Resolved, launcher: str) -> None:
    run = resolved(launcher=launcher, nodes=3, priority="normal")
    assert job_of(run)["runPolicy"]["schedulingPolicy"] == {
        "minAvailable": 3,
        "queue": "research",
        "priorityClass": "normal",
    }
    for replica in replicas_of(run).values():
        assert replica["restartPolicy"] == "ExitCode"
        (container,) = replica["template"]["spec"]["containers"]
        assert container["name"] == CONTAINERS[launcher]
        assert container["command"][:4] == ["python", "-m", "training.solo", "training.mnist"]


def test_an_xgboost_job_has_one_master_and_the_rest_workers(resolved: Resolved) -> None:
    def counts(nodes: int) -> dict[str, int]:
        replicas = replicas_of(resolved(launcher="xgboost-job", nodes=nodes))
        return {role: replica["replicas"] for role, replica in replicas.items()}

    assert counts(3) == {"Master": 1, "Worker": 2}
    assert counts(1) == {"Master": 1}


def test_a_paddle_job_has_workers_alone_and_their_index_for_a_rank(resolved: Resolved) -> None:
    """With a master, the operator takes the job for one with parameter servers."""
    replicas = replicas_of(resolved(launcher="paddle-job", nodes=3))
    assert {role: replica["replicas"] for role, replica in replicas.items()} == {"Worker": 3}
    (container,) = replicas["Worker"]["template"]["spec"]["containers"]
    assert container["env"][0] == {
        "name": "PADDLE_RANK",
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['training.kubeflow.org/replica-index']"}},
    }


@both
def test_on_one_machine_each_process_has_a_rank_and_all_meet_at_one_address(launcher: str) -> None:
    local_variables = LAUNCHERS[launcher].local_variables
    assert local_variables
    processes = local_variables([5001, 5002, 5003])
    rank, count = ("PADDLE_RANK", "PADDLE_NNODES") if launcher == "paddle-job" else ("RANK", "WORLD_SIZE")
    assert [(process[rank], process[count]) for process in processes] == [("0", "3"), ("1", "3"), ("2", "3")]
    addresses = {
        process.get("PADDLE_MASTER") or process["MASTER_ADDR"] + ":" + process["MASTER_PORT"] for process in processes
    }
    assert addresses == {"localhost:5001"}


def test_paddles_place_is_the_launchers_to_say(checked: Callable[..., StackReport]) -> None:
    assert "TY601" in rules(checked(launcher="paddle-job", env={"PADDLE_RANK": "0"}))
    assert "TY601" not in rules(checked(launcher="paddle-job", env={"PADDLE_DISTRI_BACKEND": "gloo"}))
