"""Every launcher by name, and the manifests of a run with its final name."""

import hashlib
import json

from workloads.config import Launcher
from workloads.launchers import (
    indexed_job,
    mpi_job,
    paddle_job,
    pytorch_job,
    tf_job,
    torchx_job,
    train_job,
    volcano_job,
    xgboost_job,
)
from workloads.launchers.isolation import isolation
from workloads.launchers.kind import LauncherKind
from workloads.pod import Manifest
from workloads.resolve import Run

LAUNCHERS: dict[Launcher, LauncherKind] = {
    "indexed-job": indexed_job.LAUNCHER,
    "pytorch-job": pytorch_job.LAUNCHER,
    "mpi-job": mpi_job.LAUNCHER,
    "volcano-job": volcano_job.LAUNCHER,
    "torchx": torchx_job.LAUNCHER,
    "tf-job": tf_job.LAUNCHER,
    "xgboost-job": xgboost_job.LAUNCHER,
    "paddle-job": paddle_job.LAUNCHER,
    "train-job": train_job.LAUNCHER,
}


def run_name(run: Run) -> str:
    """`<stack>-<8 hex>`: the same manifest is the same run, an edit makes a new one."""
    unnamed = json.dumps(_manifests(run, run.stack), sort_keys=True)
    return f"{run.stack}-{hashlib.sha256(unnamed.encode()).hexdigest()[:8]}"


def manifests_of(run: Run) -> list[Manifest]:
    """The Kubernetes objects of a run, in the order in which they are created."""
    return _manifests(run, run_name(run))


def _manifests(run: Run, name: str) -> list[Manifest]:
    return [*isolation(run, name), *LAUNCHERS[run.experiment.launcher].manifests(run, name)]
