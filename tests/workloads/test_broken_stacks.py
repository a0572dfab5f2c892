# ruff: noqa: E501 (one row a case reads better than five lines)
"""Every way we know to break a stack file: one report, the key, the fix, the exit code, and never a traceback."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.conftest import EXPERIMENT, OWN_COMMAND, PLATFORM, merged, write_stack
from workloads import references
from workloads.checks.check import StackReport, check

Checked = Callable[..., StackReport]

# What is changed, the rule that says so, the key it names, and words that the report must hold.
EXPERIMENTS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"nodez": 2}, "TY003", "nodez", 'Did you mean "nodes"?'),
    ({"nodes": "two"}, "TY005", "nodes", "a whole number"),
    ({"nodes": "2"}, "TY005", "nodes", "remove the quotes"),
    ({"nodes": 2.5}, "TY005", "nodes", "a whole number"),
    ({"nodes": True}, "TY005", "nodes", "true is not allowed"),
    ({"nodes": 0}, "TY005", "nodes", "more than 0"),
    ({"nodes": -1}, "TY005", "nodes", "more than 0"),
    ({"nodes": None}, "TY005", "nodes", "an empty value"),
    ({"nodes": [2]}, "TY005", "nodes", "a whole number"),
    ({"launcher": "pytorchjob"}, "TY005", "launcher", 'Did you mean "pytorch-job"?'),
    ({"launcher": 5}, "TY005", "launcher", "indexed-job, pytorch-job"),
    ({"launcher": ...}, "TY004", "launcher", "add `launcher:`"),
    ({"program": ...}, "TY004", "program", "A module of training/"),
    ({"program": "training.mnst"}, "TY006", "program", 'Did you mean "training.mnist"?'),
    ({"program": {"comand": ["x"]}}, "TY003", "program.comand", 'Did you mean "command"?'),
    ({"program": {"command": []}}, "TY005", "program.command", "at least 1"),
    ({"program": {"command": "python train.py"}, "args": ...}, "TY005", "program.command", "a list"),
    ({"program": {"command": ["x"]}}, "TY007", "args", "the entire command"),
    ({"program": ["training.mnist"]}, "TY005", "program", "text"),
    ({"args": {"stepz": 3}}, "TY007", "args.stepz", 'Did you mean "steps"?'),
    ({"args": {"steps": "many"}}, "TY007", "args.steps", "a whole number"),
    ({"args": {"steps": 2.5}}, "TY007", "args.steps", "a whole number"),
    ({"args": {"steps": {"a": 1}}}, "TY005", "args.steps", "cannot be an argument"),
    ({"args": ["--steps", 3]}, "TY005", "args", "a map"),
    ({"args": {"--steps": 3}}, "TY005", "args.--steps", "starting with a letter"),
    (
        {"args": {"steps": 1, "global_batch": 4}, "batch": {"global": 8}},
        "TY007",
        "args.global_batch",
        "set by `batch.global`",
    ),
    ({"parallelism": {"tensor": 2}}, "TY007", "parallelism.tensor", "has no --tensor"),
    ({"parallelism": {"sharding": "zero4"}}, "TY005", "parallelism.sharding", "none, fsdp, hybrid"),
    ({"platform": "labb"}, "TY009", "platform", "no platform"),
    ({"platform": 7}, "TY005", "platform", "text"),
    ({"platform": ...}, "TY004", "platform", "platform"),
    ({"platform": "trial"}, "TY009", "platform", "is an experiment"),
    ({"node_group": "a1000"}, "TY006", "node_group", 'Did you mean "a100"?'),
    ({"node_group": "CPU"}, "TY005", "node_group", "lower-case letters"),
    ({"team": "smal"}, "TY006", "team", 'Did you mean "small"?'),
    ({"queue": "reserch"}, "TY006", "queue", 'Did you mean "research"?'),
    ({"priority": "urgent"}, "TY006", "priority", "allowed: normal"),
    ({"image": "trainng"}, "TY006", "image", 'Did you mean "training"?'),
    ({"image": ""}, "TY005", "image", "at least 1"),
    ({"volumes": [{"name": "shred", "mount": "/shared"}]}, "TY006", "volumes[0].name", 'Did you mean "shared"?'),
    ({"volumes": [{"name": "shared", "mount": "shared"}]}, "TY005", "volumes[0].mount", "an absolute path"),
    ({"volumes": [{"name": "shared"}]}, "TY004", "volumes[0].mount", "add `mount:`"),
    ({"volumes": {"name": "shared"}}, "TY005", "volumes", "a list"),
    ({"volumes": ["shared"]}, "TY005", "volumes[0]", "a map"),
    ({"checkpoint": "/shared"}, "TY005", "checkpoint", "a map"),
    ({"checkpoint": {"path": "ckpt"}}, "TY005", "checkpoint.path", "absolute path"),
    ({"checkpoint": {"path": "/shared", "every_steps": 0}}, "TY005", "checkpoint.every_steps", "more than 0"),
    (
        {"checkpoint": {"path": "/shared", "evry_steps": 5}},
        "TY003",
        "checkpoint.evry_steps",
        'Did you mean "every_steps"?',
    ),
    ({"resources": {"cpus": 4}}, "TY003", "resources.cpus", 'Did you mean "cpu"?'),
    ({"resources": {"memory_gib": "16Gi"}}, "TY005", "resources.memory_gib", "a number"),
    ({"resources": {"gpu": -1}}, "TY005", "resources.gpu", "at least 0"),
    ({"env": {"NCCL_DEBUG": True}}, "TY005", "env.NCCL_DEBUG", "put it in quotes"),
    ({"env": {"A B": "x"}}, "TY005", "env.A B", "letters, digits"),
    ({"env": [{"name": "A", "value": "b"}]}, "TY005", "env", "a map"),
    ({"batch": {"micro": 2}}, "TY004", "batch.global", "add `global:`"),
    ({"batch": {"global": 0}}, "TY005", "batch.global", "more than 0"),
    ({"precision": "bfloat16"}, "TY005", "precision", "bf16, fp16, fp32, fp8"),
    ({"elastic": {"min": 4, "max": 2}}, "TY005", "elastic", "above `max`"),
    ({"max_hours": float("inf")}, "TY005", "max_hours", "finite"),
    ({"max_hours": 0}, "TY005", "max_hours", "more than 0"),
    ({"waive": {"203": "x"}}, "TY005", "waive.203", "a rule's id"),
    ({"waive": {"TY101": ""}}, "TY005", "waive.TY101", "at least 1"),
    ({"waive": ["TY101"]}, "TY005", "waive", "a map"),
    ({"restarts": "never"}, "TY005", "restarts", "a whole number"),
    ({"host_network": "yes"}, "TY005", "host_network", "true or false"),
    ({"fabric": "infiniband"}, "TY005", "fabric", "auto, efa, tcp"),
    ({"fabric_versions": {"nccl": 2.27}}, "TY005", "fabric_versions.nccl", "put it in quotes"),
]


@pytest.mark.parametrize(("changes", "rule", "key", "words"), EXPERIMENTS, ids=[f"{c}"[:60] for c, *_ in EXPERIMENTS])
def test_a_broken_experiment_names_the_key_and_the_remedy(
    checked: Checked, changes: dict[str, Any], rule: str, key: str, words: str
) -> None:
    report = checked(**changes)
    assert report.exit_code == 2
    matching = [finding for finding in report.findings if (finding.rule, finding.where.key) == (rule, key)]
    assert matching, report.findings
    (finding,) = matching
    assert words in f"{finding.message} {finding.fix}"
    assert finding.where.line is not None
    assert finding.fix


def test_a_program_that_is_no_python_is_reported_with_its_own_line(
    checked: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(module: str) -> None:
        ast.parse("import torch\ndef main(:\n", filename="training/mnist.py")

    monkeypatch.setattr(references, "flags_of", unreadable)
    report = checked()
    assert report.exit_code == 2
    (finding,) = report.findings
    assert (finding.rule, str(finding.where)) == ("TY015", "training/mnist.py:2")


def test_everything_wrong_is_reported_at_once_and_in_the_order_of_the_file(checked: Checked) -> None:
    report = checked(nodes=0, node_group="a1000", args={"stepz": 1}, nodez=3, launcher="mpi")
    keys = [finding.where.key for finding in report.findings]
    assert set(keys) >= {"nodes", "node_group", "args.stepz", "nodez", "launcher"}
    lines = [finding.where.line or 0 for finding in report.findings]
    assert lines == sorted(lines)


PLATFORMS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"target": "gke"}, "TY005", "target", "eks, existing"),
    ({"target": ...}, "TY004", "target", "add `target:`"),
    ({"teams": ...}, "TY004", "teams", "add `teams:`"),
    ({"teams": []}, "TY005", "teams", "at least 1"),
    ({"node_groups": [{"name": "a", "instance_type": "p4d.24xl", "max": 1}]}, "TY005", "node_groups[0].instance_type", 'Did you mean "p4d.24xlarge"?'),
    ({"node_groups": [{"name": "a", "instance_type": "m5.xlarge", "min": 3, "max": 1}]}, "TY005", "node_groups[0]", "above `max`"),
    ({"node_groups": [{"name": "a", "instance_type": "m5.xlarge", "max": 1, "efa": True}]}, "TY005", "node_groups[0]", "takes no EFA"),
    ({"node_groups": [{"name": "cpu", "instance_type": "m5.xlarge", "max": 1, "capacity": {"block": "x"}}]}, "TY005", "node_groups[0].capacity.block", "capacity reservation"),
    ({"node_groups": [{"name": "cpu", "instance_type": "m5.xlarge", "max": 1, "capacity": "spots"}]}, "TY005", "node_groups[0].capacity", "on-demand, spot"),
    ({"node_pools": [{"name": "cpu", "instance_types": ["c5.2xlarge"]}]}, "TY006", "node_pools[0].name", "already"),
    ({"node_pools": [{"name": "p", "instance_types": []}]}, "TY005", "node_pools[0].instance_types", "at least 1"),
    ({"storage": {"fsx": [{"name": "f", "capacity_gib": 5000}]}}, "TY005", "storage.fsx[0]", "4800 or 7200"),
    ({"storage": {"fsx": [{"name": "f", "capacity_gib": 1200, "deployment": "persistent-2", "throughput_mb_s_per_tib": 100}]}}, "TY005", "storage.fsx[0]", "125, 250, 500, 1000"),
    ({"storage": {"efs": [{"name": "f", "class": "Bad Class"}]}}, "TY005", "storage.efs[0].class", "lower-case"),
    ({"storage": {"efs": [{"name": "f", "clas": "efs-sc"}]}}, "TY003", "storage.efs[0].clas", 'Did you mean "class"?'),
    ({"network": {"zones": ["us-east-1a"]}}, "TY005", "network.zones", "at least 2"),
    ({"network": {"zones": ["us-east-1a", "us-east-1b"], "cidr": "10.0.0.0"}}, "TY005", "network.cidr", "IPv4 range"),
    ({"network": ...}, "TY004", "network", "add `network:`"),
    ({"cluster": {"kubernetes_version": 1.33}}, "TY005", "cluster.kubernetes_version", "put it in quotes"),
    ({"cluster": {"context": "x"}}, "TY003", "cluster.context", "unknown key"),
    ({"teams": [{"name": "default", "namespace": "x", "queue": "nowhere"}]}, "TY006", "teams[0].queue", "allowed: research, default"),
    ({"teams": [{"name": "default", "namespace": "x", "quota": {"pods": "lots"}}]}, "TY005", "teams[0].quota.pods", "no amount"),
    ({"priorities": [{"name": "max", "value": 2_000_000_001}]}, "TY005", "priorities[0].value", "at most 1000000000"),
    ({"images": {"pull_secret": {"name": "d", "username": "u", "password": "hunter2"}}}, "TY005", "images.pull_secret.password", "{secret: NAME}"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "rule", "key", "words"), PLATFORMS, ids=[f"{c}"[:60] for c, *_ in PLATFORMS])
def test_a_broken_platform_names_the_key_and_the_remedy(
    tmp_path: Path, changes: dict[str, Any], rule: str, key: str, words: str
) -> None:
    report = check(write_stack(tmp_path, "broken", "platform", merged(PLATFORM, changes)))
    assert report.exit_code == 2
    matching = [finding for finding in report.findings if (finding.rule, finding.where.key) == (rule, key)]
    assert matching, report.findings
    assert words in f"{matching[0].message} {matching[0].fix}"


@pytest.mark.parametrize("body", [None, [], "text", 3, {"platform": {"a": 1}}, {"volumes": 3, "platform": "lab"}])
def test_a_body_of_the_wrong_shape_is_reported_not_raised(lab: Path, body: object) -> None:
    for kind in ("experiment", "platform"):
        report = check(write_stack(lab, "trial", kind, body))
        assert report.exit_code == 2
        assert report.kind == kind


@pytest.mark.parametrize("name", ["Upper", "under_score", "1st", "a" * 41, "dots.inside"])
def test_a_stack_name_that_cannot_name_pods_is_refused(lab: Path, name: str) -> None:
    report = check(write_stack(lab, name, "experiment", EXPERIMENT))
    assert [finding.rule for finding in report.findings if finding.severity == "error"] == ["TY008"]


def test_an_invalid_platform_is_reported_once_at_the_experiment_that_names_it(tmp_path: Path) -> None:
    write_stack(tmp_path, "lab", "platform", merged(PLATFORM, {"target": "gke", "x": 1}))
    report = check(write_stack(tmp_path, "trial", "experiment", merged(EXPERIMENT, OWN_COMMAND)))
    (finding,) = report.findings
    assert finding.rule == "TY009"
    assert finding.where.key == "platform"


def test_a_secret_written_into_a_stack_file_is_not_repeated_by_the_report(tmp_path: Path) -> None:
    body = merged(PLATFORM, {"images": {"pull_secret": {"name": "d", "username": "u", "password": "hunter2"}}})
    report = check(write_stack(tmp_path, "broken", "platform", body))
    assert "hunter2" not in str(report)


def test_what_aws_would_refuse_is_an_error_with_its_key(tmp_path: Path) -> None:
    body = merged(PLATFORM, {"network": {"zones": ["us-east-1a", "eu-west-1b"]}})
    report = check(write_stack(tmp_path, "broken", "platform", body))
    assert report.exit_code == 2
    assert [(finding.rule, finding.where.key) for finding in report.findings if finding.severity == "error"] == [
        ("TY012", "network.zones[1]")
    ]


def test_an_eks_platform_without_a_region_is_refused(tmp_path: Path) -> None:
    path = write_stack(tmp_path, "broken", "platform", PLATFORM)
    path.write_text(path.read_text().replace("  aws:region: us-east-1\n", ""))
    report = check(path)
    assert [(finding.rule, finding.where.key) for finding in report.findings] == [("TY004", "aws:region")]
