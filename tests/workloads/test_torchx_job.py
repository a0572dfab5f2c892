"""`torchx`: what TorchX makes of an application, and what is ours in it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.conftest import OWN_COMMAND, PLATFORM, merged, write_stack
from tests.workloads.test_launchers import by_kind, environment, pod_specs
from workloads.launchers.registry import manifests_of, run_name
from workloads.programs import PROJECT
from workloads.resolve import Run

Resolved = Callable[..., Run]


@pytest.fixture
def with_etcd(lab: Path, resolved: Resolved) -> Resolved:
    """As `resolved`, on a platform with etcd."""
    operators = {**PLATFORM["operators"], "etcd": {"enabled": True}}
    write_stack(lab, "lab", "platform", merged(PLATFORM, {"operators": operators}))
    return resolved


def test_every_pod_is_a_task_and_all_are_one_gang(resolved: Resolved) -> None:
    run = resolved(launcher="torchx", nodes=3, priority="normal")
    job = by_kind(run)["Job"]["spec"]
    assert [(task["name"], task["replicas"], task["minAvailable"]) for task in job["tasks"]] == [
        ("worker-0", 1, 1),
        ("worker-1", 1, 1),
        ("worker-2", 1, 1),
    ]
    assert (job["minAvailable"], job["queue"], job["priorityClassName"]) == (3, "research", "normal")
    assert job["schedulerName"] == "volcano"


def test_torchx_finds_the_run_by_its_labels_and_so_do_we(resolved: Resolved) -> None:
    run = resolved(launcher="torchx")
    for replica, task in enumerate(by_kind(run)["Job"]["spec"]["tasks"]):
        labels = task["template"]["metadata"]["labels"]
        assert labels["torchx.pytorch.org/app-name"] == "trial"
        assert (labels["torchx.pytorch.org/role-name"], labels["torchx.pytorch.org/replica-id"]) == (
            "worker",
            str(replica),
        )
        assert labels["app.kubernetes.io/instance"] == run_name(run)
        assert labels["app.kubernetes.io/managed-by"] == "trainyard"


def test_nothing_of_it_is_random(with_etcd: Resolved) -> None:
    run = with_etcd(launcher="torchx")
    assert manifests_of(run) == manifests_of(run)


def test_the_pods_meet_in_the_platforms_etcd(with_etcd: Resolved) -> None:
    for asked in ({}, {"rendezvous": "etcd"}):
        for spec in pod_specs(with_etcd(launcher="torchx", processes_per_node=3, **asked)):
            variables = environment(spec)
            assert variables["PET_RDZV_BACKEND"] == "etcd-v2"
            assert variables["PET_RDZV_ENDPOINT"] == "etcd.etcd.svc:2379"
            assert (variables["PET_NNODES"], variables["PET_NPROC_PER_NODE"]) == ("2", "3")
            assert "initContainers" not in spec


@pytest.mark.parametrize(("platform", "asked"), [("resolved", {}), ("with_etcd", {"rendezvous": "c10d"})])
def test_without_etcd_or_when_asked_they_meet_at_the_first_pod(
    request: pytest.FixtureRequest, platform: str, asked: dict[str, str]
) -> None:
    run = request.getfixturevalue(platform)(launcher="torchx", **asked)
    job = by_kind(run)["Job"]
    first = f"{run_name(run)}-{job['spec']['tasks'][0]['name']}-0.{run_name(run)}"
    # Its name resolves before it is ready.
    assert "--publish-not-ready-addresses" in job["spec"]["plugins"]["svc"]
    for spec in pod_specs(run):
        assert environment(spec)["PET_RDZV_BACKEND"] == "c10d"
        assert environment(spec)["PET_RDZV_ENDPOINT"] == f"{first}:29400"
        assert first in spec["initContainers"][0]["command"][-1]


def test_each_start_of_a_run_is_a_rendezvous_of_its_own(with_etcd: Resolved) -> None:
    run = with_etcd(launcher="torchx")
    for spec in pod_specs(run):
        variables = environment(spec)
        assert variables["PET_RDZV_ID"] == f"{run_name(run)}-$(TRAINYARD_START)"
        assert "volcano.sh/job-version" in variables["TRAINYARD_START"]["fieldRef"]["fieldPath"]
        # Kubernetes fills in what stands before.
        names = list(variables)
        assert names.index("TRAINYARD_START") < names.index("PET_RDZV_ID")


@pytest.mark.parametrize("text", ["${replica_id}", "$$", "$(HOME)", "a$b"])
def test_what_looks_like_a_macro_of_torchx_is_left_as_it_is(resolved: Resolved, text: str) -> None:
    own: dict[str, Any] = {**OWN_COMMAND, "program": {"command": ["sh", "-c", text]}}
    for spec in pod_specs(resolved(launcher="torchx", env={"MINE": text}, **own)):
        assert spec["containers"][0]["command"] == ["sh", "-c", text]
        assert environment(spec)["MINE"] == text


@pytest.mark.parametrize("restarts", [0, 3])
def test_it_restarts_as_a_whole_but_not_on_a_wrong_configuration(resolved: Resolved, restarts: int) -> None:
    run = resolved(launcher="torchx", restarts=restarts)
    job = by_kind(run)["Job"]["spec"]
    assert job["maxRetry"] == restarts + 1
    assert job["policies"] == [
        {"exitCode": 2, "action": "TerminateJob"},
        {"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"},
    ]
    # A task's own policies would come before the job's.
    assert not [task for task in job["tasks"] if "policies" in task]
    assert {spec["restartPolicy"] for spec in pod_specs(run)} == {"Never"}


def test_the_library_is_loaded_for_manifests_alone() -> None:
    script = (
        "import sys\n"
        "from workloads.checks.check import check\n"
        "from workloads.render import as_yaml\n"
        "from workloads.stacks import stack_path\n"
        "report = check(stack_path('mnist-torchx'))\n"
        "print(report.exit_code, 'torchx' in sys.modules)\n"
        "as_yaml(report.loaded.run)\n"
        "print('torchx' in sys.modules, 'torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["0 False", "True False"]
    assert done.stderr == ""
