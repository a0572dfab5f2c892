"""Copies the operators' CRDs from their Go modules: `python -m infra.charts.vendor_crds`, after a version has changed.

Descriptions are left out: two thirds of each file, which Pulumi would carry through every preview and keep in state.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from infra.versions import JOBSET, MPI_OPERATOR, TRAINER, TRAINING_OPERATOR

CHARTS = Path(__file__).parent
TESTS = CHARTS.parents[1] / "tests"

# Volcano's chart brings its own CRDs; the tests alone need a copy, and take the oldest line that a platform may pin.
SOURCES = [
    (
        f"github.com/kubeflow/training-operator@{TRAINING_OPERATOR}",
        "manifests/base/crds",
        # Never kubeflow.org_mpijobs.yaml: that v1 kind has the CRD name of the MPI operator's v2beta1.
        [f"kubeflow.org_{plural}.yaml" for plural in ("paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs")],
        CHARTS / "training-operator" / "crds",
    ),
    (
        f"github.com/kubeflow/mpi-operator@{MPI_OPERATOR}",
        "manifests/base",
        ["kubeflow.org_mpijobs.yaml"],
        CHARTS / "mpi-operator" / "crds",
    ),
    (
        f"sigs.k8s.io/jobset@{JOBSET}",
        "config/components/crd/bases",
        ["jobset.x-k8s.io_jobsets.yaml"],
        CHARTS / "jobset" / "crds",
    ),
    (
        f"github.com/kubeflow/trainer/v2@{TRAINER}",
        "manifests/base/crds",
        [f"trainer.kubeflow.org_{kind}s.yaml" for kind in ("clustertrainingruntime", "trainingruntime", "trainjob")],
        CHARTS / "trainer" / "crds",
    ),
    (
        "volcano.sh/volcano@v1.10.0",
        "installer/helm/chart/volcano/crd/bases",
        ["batch.volcano.sh_jobs.yaml", "scheduling.volcano.sh_podgroups.yaml", "scheduling.volcano.sh_queues.yaml"],
        TESTS / "crds",
    ),
]


def main() -> None:
    for module, folder, names, target in SOURCES:
        target.mkdir(parents=True, exist_ok=True)
        source = module_folder(module) / folder
        for name in names:
            crd = without_descriptions(yaml.safe_load((source / name).read_text()))
            header = f"# {module} {folder}/{name}, without descriptions (infra/charts/vendor_crds.py)\n"
            (target / name).write_text(header + yaml.safe_dump(crd, sort_keys=False))


def module_folder(module: str) -> Path:
    """Where Go unpacks a module; its checksum database vouches for the content."""
    done = subprocess.run(["go", "mod", "download", "-json", module], check=True, capture_output=True, text=True)
    return Path(json.loads(done.stdout)["Dir"])


def without_descriptions(node: Any) -> Any:
    """The schema without its prose; a property that is itself named `description` is a map, and stays."""
    if isinstance(node, dict):
        return dict(_kept(node))
    if isinstance(node, list):
        return [without_descriptions(item) for item in node]
    return node


def _kept(node: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in node.items():
        if not (key == "description" and isinstance(value, str)):
            yield key, without_descriptions(value)


if __name__ == "__main__":
    main()
