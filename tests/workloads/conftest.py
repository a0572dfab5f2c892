"""A laboratory platform with one node group of each sort, and experiments on it that a test changes key by key."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from workloads.checks.check import StackReport, check
from workloads.resolve import Run
from workloads.stacks import load_experiment

PLATFORM: dict[str, Any] = {
    "target": "eks",
    "network": {"zones": ["us-east-1a", "us-east-1b"]},
    "node_groups": [
        {"name": "cpu", "instance_type": "m5.4xlarge", "min": 1, "max": 4},
        {"name": "a100", "instance_type": "p4d.24xlarge", "max": 4, "efa": True, "zone": "us-east-1a"},
        {"name": "a100-tcp", "instance_type": "p4d.24xlarge", "max": 2},
        {"name": "h100", "instance_type": "p5.48xlarge", "max": 64, "efa": True, "zone": "us-east-1a"},
        {"name": "t4", "instance_type": "g4dn.12xlarge", "max": 2},
        {"name": "trn1", "instance_type": "trn1.32xlarge", "max": 2, "efa": True, "zone": "us-east-1a"},
        {"name": "unpriced", "instance_type": "p5e.48xlarge", "max": 2, "efa": True},
    ],
    "node_pools": [
        {
            "name": "gpu-pool",
            "instance_types": ["g5.2xlarge", "g4dn.xlarge", "g5.xlarge"],
            "limits": {"nodes": 4, "cpu": 12},
        },
        {"name": "cpu-pool", "instance_types": ["c5.9xlarge", "c5.2xlarge"]},
    ],
    "storage": {
        "efs": [{"name": "shared"}],
        "fsx": [{"name": "lustre", "capacity_gib": 1200}],
    },
    "operators": {"volcano": {"queues": [{"name": "research"}]}, "training": {}},
    "priorities": [{"name": "normal", "value": 1000}],
    "teams": [
        {"name": "default", "namespace": "training", "queue": "research"},
        {"name": "small", "namespace": "small", "quota": {"requests.nvidia.com/gpu": 8, "pods": 10}},
    ],
}

EXPERIMENT: dict[str, Any] = {
    "platform": "lab",
    "launcher": "pytorch-job",
    "program": "training.mnist",
    "node_group": "cpu",
    "nodes": 2,
    "args": {"steps": 10},
    "volumes": [{"name": "shared", "mount": "/shared"}],
    "checkpoint": {"path": "/shared/ckpt"},
}

OWN_COMMAND: dict[str, Any] = {"program": {"command": ["python", "train.py"]}, "args": {}}
"""A program of the user's own, for rules that would otherwise meet a program without such flags."""


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`base` with top-level keys replaced; a value of ... removes the key."""
    body = {**copy.deepcopy(base), **changes}
    return {key: value for key, value in body.items() if value is not ...}


def write_stack(folder: Path, name: str, kind: str, body: object) -> Path:
    path = folder / f"Pulumi.{name}.yaml"
    path.write_text(yaml.safe_dump({"config": {"aws:region": "us-east-1", f"trainyard:{kind}": body}}, sort_keys=False))
    return path


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A folder with the laboratory's stack file."""
    write_stack(tmp_path, "lab", "platform", PLATFORM)
    return tmp_path


@pytest.fixture
def checked(lab: Path) -> Callable[..., StackReport]:
    """Checks the experiment with some keys changed."""

    def run(**changes: Any) -> StackReport:
        return check(write_stack(lab, "trial", "experiment", merged(EXPERIMENT, changes)))

    return run


@pytest.fixture
def resolved(lab: Path) -> Callable[..., Run]:
    """Resolves the experiment with some keys changed."""

    def run(**changes: Any) -> Run:
        return load_experiment(write_stack(lab, "trial", "experiment", merged(EXPERIMENT, changes))).run

    return run


def rules(report: StackReport) -> list[str]:
    """The ids of everything worse than information."""
    return [finding.rule for finding in report.findings if finding.severity != "info"]
