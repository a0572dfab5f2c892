"""One platform for all tests of the cluster: made from an empty cluster by the first, taken away after the last."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.kube import everything
from tests.cluster.paths import KUBECONFIG, PROJECT
from tests.cluster.pulumi_cli import Checkout

OWN = {"default", "kube-node-lease", "kube-public", "kube-system"}
"""The namespaces that Kubernetes makes for itself."""


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    if not KUBECONFIG.exists():
        pytest.skip("no cluster; first: make cluster")
    folder = tmp_path_factory.mktemp("pulumi")
    return Checkout.make(folder / "checkout", folder / "backend")


@pytest.fixture(scope="session")
def platform(checkout: Checkout) -> Iterator[Checkout]:
    """The stack `local`, up. At the end it is destroyed, and the cluster must be as it was found."""
    before = everything()
    if names := sorted(name for kind, _, name in map(str.split, before) if kind == "Namespace" and name not in OWN):
        pytest.exit(f"the cluster holds {', '.join(names)} already; first: make cluster-down cluster", returncode=2)
    checkout.up("local")
    yield checkout
    checkout.destroy("local")
    left = everything() - before
    assert not left, "left behind:\n" + "\n".join(sorted(left))


@dataclass(frozen=True)
class LocalRun:
    metrics: list[dict[str, Any]]


@pytest.fixture(scope="session")
def mnist_here(tmp_path_factory: pytest.TempPathFactory) -> LocalRun:
    """The `mnist` experiment on this machine without a cluster, as `make demo` runs it."""
    folder = tmp_path_factory.mktemp("mnist")
    command = [sys.executable, "-m", "workloads", "run", "mnist", "--folder", str(folder)]
    subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
    return LocalRun(read_metrics(folder / "metrics.jsonl"))


def read_metrics(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
