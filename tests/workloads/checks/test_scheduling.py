"""TY6xx: what the launcher needs of the platform."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.conftest import EXPERIMENT, PLATFORM, merged, rules, write_stack
from workloads.checks.check import StackReport, check
from workloads.image_sources import image_names

Checked = Callable[..., StackReport]
IMAGES = {"build": ["training", "mpi"]}


@pytest.mark.parametrize(
    ("launcher", "operators", "expected"),
    [
        ("pytorch-job", {"training": {}}, []),
        ("pytorch-job", {"volcano": {}}, ["TY602"]),
        ("pytorch-job", {"training": {"schemes": ["tfjob"]}}, ["TY602"]),
        ("indexed-job", {}, []),
        ("mpi-job", {"mpi": {}}, []),
        ("mpi-job", {"training": {}}, ["TY602"]),
        ("volcano-job", {"volcano": {}}, []),
        ("volcano-job", {"training": {}}, ["TY602"]),
        ("tf-job", {"training": {}}, []),
        ("tf-job", {"training": {"schemes": ["pytorchjob"]}}, ["TY602"]),
        ("torchx", {"volcano": {}}, []),
        ("torchx", {"training": {}}, ["TY602"]),
        ("train-job", {"trainer_v2": {"enabled": True}}, []),
        ("train-job", {"trainer_v2": {"enabled": False}}, ["TY602"]),
        ("train-job", {"training": {}}, ["TY602"]),
    ],
)
def test_the_launchers_operator_must_be_on_the_platform(
    tmp_path: Path, launcher: str, operators: dict[str, Any], expected: list[str]
) -> None:
    teams = [{"name": "default", "namespace": "training"}]
    platform = {"operators": operators, "teams": teams, "images": IMAGES}
    write_stack(tmp_path, "lab", "platform", merged(PLATFORM, platform))
    changes = {"launcher": launcher, "image": "mpi"}
    report = check(write_stack(tmp_path, "trial", "experiment", merged(EXPERIMENT, changes)))
    assert rules(report) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"nodes": 2}, []),
        ({"nodes": 4}, ["TY606"]),
        ({"launcher": "indexed-job"}, ["TY606"]),
        ({"launcher": "volcano-job"}, ["TY606"]),
        ({"checkpoint": ..., "volumes": []}, ["TY606"]),
        ({"checkpoint": {"path": "/shared/ckpt", "resume": False}}, ["TY606"]),
    ],
)
def test_elasticity_needs_a_launcher_a_starting_number_and_a_checkpoint(
    checked: Checked, changes: dict[str, Any], expected: list[str]
) -> None:
    assert rules(checked(elastic={"min": 1, "max": 3}, **changes)) == expected


@pytest.mark.parametrize("variable", ["RANK", "PET_NNODES", "OMPI_COMM_WORLD_RANK", "VC_TASK_INDEX", "TF_CONFIG"])
def test_variables_of_the_launcher_are_refused(checked: Checked, variable: str) -> None:
    assert rules(checked(launcher="volcano-job", env={variable: "0"})) == ["TY601"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"launcher": "volcano-job", "max_hours": 2, "restarts": 3}, "up to 4 starts of 2 hours, 8 in all"),
        ({"launcher": "torchx", "max_hours": 2, "restarts": 3}, "up to 4 starts of 2 hours, 8 in all"),
        ({"launcher": "volcano-job", "max_hours": 2, "restarts": 0}, None),
        ({"launcher": "volcano-job"}, None),
        ({"launcher": "train-job", "max_hours": 2, "restarts": 1}, "up to 2 starts of 2 hours, 4 in all"),
        ({"launcher": "indexed-job", "max_hours": 2}, None),
    ],
)
def test_a_time_limit_that_restarts_extend_is_told(
    checked: Checked, changes: dict[str, Any], expected: str | None
) -> None:
    told = [finding.message for finding in checked(**changes).findings if finding.rule == "TY604"]
    assert told == ([expected] if expected else [])


def test_an_mpi_job_needs_an_image_with_mpi(tmp_path: Path) -> None:
    teams = [{"name": "default", "namespace": "training"}]
    platform = {"operators": {"mpi": {}}, "teams": teams, "images": IMAGES}
    write_stack(tmp_path, "lab", "platform", merged(PLATFORM, platform))

    def found(image: str) -> list[str]:
        changes = {"launcher": "mpi-job", "image": image}
        return rules(check(write_stack(tmp_path, "trial", "experiment", merged(EXPERIMENT, changes))))

    assert found("training") == ["TY605"]
    assert found("mpi") == []
    assert "TY605" not in found("registry.example.com/mine:1")


def test_the_launcher_of_an_mpi_job_is_a_pod_of_the_quota(tmp_path: Path) -> None:
    team = {"name": "default", "namespace": "training", "quota": {"pods": 3}}
    platform = {"operators": {"mpi": {}}, "teams": [team], "images": IMAGES}
    write_stack(tmp_path, "lab", "platform", merged(PLATFORM, platform))

    def found(nodes: int) -> list[str]:
        changes = {"launcher": "mpi-job", "image": "mpi", "nodes": nodes}
        return rules(check(write_stack(tmp_path, "trial", "experiment", merged(EXPERIMENT, changes))))

    assert found(2) == []
    assert found(3) == ["TY603"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"launcher": "tf-job"}, []),
        ({"launcher": "tf-job", "processes_per_node": 2}, ["TY607"]),
        ({"launcher": "tf-job", "node_group": "a100"}, ["TY607"]),  # by default one process for each of its 8 GPUs
        ({"launcher": "tf-job", "node_group": "a100", "processes_per_node": 1}, []),
        ({"launcher": "pytorch-job", "processes_per_node": 2}, []),
    ],
)
def test_a_launcher_of_lone_processes_refuses_more_of_them(
    checked: Checked, changes: dict[str, Any], expected: list[str]
) -> None:
    assert [rule for rule in rules(checked(**changes)) if rule == "TY607"] == expected


@pytest.mark.parametrize(
    ("changes", "etcd", "expected"),
    [
        ({"launcher": "torchx"}, True, []),
        ({"launcher": "torchx"}, False, []),
        ({"launcher": "torchx", "rendezvous": "etcd"}, True, []),
        ({"launcher": "torchx", "rendezvous": "etcd"}, False, ["rendezvous"]),
        ({"launcher": "torchx", "rendezvous": "c10d"}, False, []),
        ({"launcher": "torchx", "image": "mpi"}, True, ["image"]),
        ({"launcher": "torchx", "image": "mpi", "rendezvous": "c10d"}, True, []),
        ({"launcher": "volcano-job", "rendezvous": "c10d"}, True, ["rendezvous"]),
    ],
)
def test_pods_must_be_able_to_meet(tmp_path: Path, changes: dict[str, Any], etcd: bool, expected: list[str]) -> None:
    operators = {**PLATFORM["operators"], "etcd": {"enabled": etcd}}
    write_stack(tmp_path, "lab", "platform", merged(PLATFORM, {"operators": operators, "images": IMAGES}))
    report = check(write_stack(tmp_path, "trial", "experiment", merged(EXPERIMENT, changes)))
    assert [finding.where.key for finding in report.findings if finding.rule == "TY608"] == expected


@pytest.mark.parametrize(
    ("quota", "nodes", "message"),
    [
        ({"requests.cpu": "1500m"}, 3, None),
        ({"requests.cpu": "1500m"}, 4, "4 pods ask for 2 requests.cpu; team `default` may have 1.5 requests.cpu"),
        ({"requests.memory": "4Gi"}, 2, None),
        (
            {"requests.memory": "4Gi"},
            3,
            "3 pods ask for 6 GiB of requests.memory; team `default` may have 4 GiB of requests.memory",
        ),
    ],
)
def test_a_quota_counts_in_whatever_unit_it_is_written(
    tmp_path: Path, quota: dict[str, Any], nodes: int, message: str | None
) -> None:
    teams = [{"name": "default", "namespace": "training", "quota": quota}]
    write_stack(tmp_path, "lab", "platform", merged(PLATFORM, {"teams": teams}))
    report = check(write_stack(tmp_path, "trial", "experiment", merged(EXPERIMENT, {"nodes": nodes})))
    assert [finding.message for finding in report.findings if finding.rule == "TY603"] == ([message] if message else [])


def test_a_gang_that_its_queue_can_never_hold_is_refused(tmp_path: Path) -> None:
    queues = [{"name": "research", "capability": {"cpu": 1, "memory": "1Ti"}}, {"name": "wide"}]
    write_stack(
        tmp_path, "lab", "platform", merged(PLATFORM, {"operators": {"training": {}, "volcano": {"queues": queues}}})
    )

    def found(**changes: Any) -> list[str]:
        return rules(check(write_stack(tmp_path, "trial", "experiment", merged(EXPERIMENT, changes))))

    assert found(nodes=2) == []
    assert found(nodes=3) == ["TY611"]
    assert found(nodes=3, queue="wide") == []
    assert found(nodes=3, queue="default") == []


def test_a_priority_that_preempts_needs_a_scheduler_that_does(tmp_path: Path) -> None:
    def found(*actions: str) -> list[str]:
        priorities = [{"name": "low", "value": 1}, {"name": "high", "value": 2, "preempts": True}]
        operators = {"volcano": {"actions": list(actions), "queues": [{"name": "research"}]}}
        changes = {"priorities": priorities, "operators": operators}
        report = check(write_stack(tmp_path, "lab", "platform", merged(PLATFORM, changes)))
        return [str(finding.where.key) for finding in report.findings if finding.rule == "TY612"]

    assert found("allocate", "preempt") == []
    assert found("allocate", "backfill") == ["priorities[1].preempts"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"launcher": "pytorch-job"}, ["restarts"]),
        ({"launcher": "tf-job"}, ["restarts"]),
        ({"launcher": "pytorch-job", "max_hours": 1}, []),
        ({"launcher": "pytorch-job", "restarts": 0}, []),
        ({"launcher": "indexed-job"}, []),
    ],
)
def test_a_run_that_nobody_would_ever_give_up_is_told(
    checked: Checked, changes: dict[str, Any], expected: list[str]
) -> None:
    assert [finding.where.key for finding in checked(**changes).findings if finding.rule == "TY613"] == expected


@pytest.mark.parametrize(
    ("program", "image", "expected"),
    [
        ("training.tf_mnist", "tensorflow", None),
        (
            "training.tf_mnist",
            "training",
            "image `training` holds no keras, tensorflow, which training.tf_mnist needs",
        ),
        ("training.mnist", "mpi", None),
        ("training.mnist", "xgboost", "image `xgboost` holds no torch, which training.mnist needs"),
        ("training.tf_mnist", "registry.example.com/mine:1", None),
        ({"command": ["python", "train.py"]}, "xgboost", None),
    ],
)
def test_an_image_without_the_programs_library_is_refused(
    tmp_path: Path, program: Any, image: str, expected: str | None
) -> None:
    write_stack(tmp_path, "lab", "platform", merged(PLATFORM, {"images": {"build": image_names()}}))
    changes = {"program": program, "image": image, "args": {}}
    report = check(write_stack(tmp_path, "trial", "experiment", merged(EXPERIMENT, changes)))
    found = [finding.message for finding in report.findings if finding.rule == "TY609"]
    assert found == ([expected] if expected else [])
