"""The manifests of every experiment that ships, as files that are reviewed like code.

`TRAINYARD_GOLDEN=rewrite pytest tests/workloads/test_golden.py` writes them anew (`make golden`).
"""

import os
from pathlib import Path

import pytest

from tests.schemas import validate_manifest
from workloads.launchers.registry import manifests_of
from workloads.render import as_yaml
from workloads.stacks import load_experiment, stack_files, stack_name

GOLDEN = Path(__file__).parents[1] / "golden"
EXPERIMENTS = [path for path in stack_files() if "trainyard:experiment:" in path.read_text()]


@pytest.fixture(autouse=True)
def unchanging_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit of training/ is another image on a registry of this machine, but no change worth reviewing here."""
    monkeypatch.setattr("workloads.images.source_digest", lambda image: "0" * 12)


every_experiment = pytest.mark.parametrize("path", EXPERIMENTS, ids=stack_name)


@every_experiment
def test_an_experiment_renders_what_its_golden_file_holds(path: Path) -> None:
    golden, text = GOLDEN / f"{stack_name(path)}.yaml", as_yaml(load_experiment(path).run)
    if os.environ.get("TRAINYARD_GOLDEN") == "rewrite":
        golden.write_text(text)
    assert golden.exists(), "new experiment: write its golden file with `make golden`, and review it"
    assert text == golden.read_text()


@every_experiment
def test_an_experiment_renders_manifests_that_kubernetes_takes(path: Path) -> None:
    for manifest in manifests_of(load_experiment(path).run):
        assert validate_manifest(manifest) == []


def test_every_golden_file_has_its_experiment() -> None:
    assert {path.stem for path in GOLDEN.glob("*.yaml")} <= {stack_name(path) for path in EXPERIMENTS}
