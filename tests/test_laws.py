"""The three laws that keep the project's halves apart."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

ROOT = Path(__file__).resolve().parent.parent


def imports_below(folder: str) -> Iterator[tuple[Path, str]]:
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from ((path, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield path, node.module


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [
        ("infra", ("torch", "training", "workloads")),
        ("workloads", ("torch", "training")),
        ("training", ("pulumi", "infra", "workloads")),
    ],
)
def test_a_folder_does_not_import_what_it_must_not_know(folder: str, forbidden: tuple[str, ...]) -> None:
    found = list(imports_below(folder))
    assert found
    wrong = [f"{path.relative_to(ROOT)}: {name}" for path, name in found if name.split(".")[0] in forbidden]
    wrong += [
        f"{path.relative_to(ROOT)}: {name}"
        for path, name in found
        if "pulumi" in forbidden and name.startswith("pulumi_")
    ]
    assert not wrong


def test_no_configuration_model_holds_an_output() -> None:
    for path in [*sorted((ROOT / "infra/config").glob("*.py")), ROOT / "workloads/config.py"]:
        assert "pulumi" not in {name.split(".")[0] for _, name in _imports(path)}, path


def _imports(path: Path) -> Iterator[tuple[Path, str]]:
    return ((found, name) for found, name in imports_below(str(path.parent.relative_to(ROOT))) if found == path)


def test_checking_imports_neither_pulumi_nor_torch() -> None:
    script = (
        "import sys, workloads.cli\n"
        "print([name for name in ('pulumi', 'torch', 'matplotlib', 'training') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_configuration_model_is_closed_strict_and_frozen() -> None:
    from infra.config.model import Model
    from infra.config.platform import EksPlatform, ExistingPlatform
    from infra.config.validation import models_in
    from workloads.config import ExperimentConfig

    seen: set[type[BaseModel]] = set()

    def visit(model: type[BaseModel]) -> None:
        if model in seen:
            return
        seen.add(model)
        assert issubclass(model, Model)
        assert model.model_config["extra"] == "forbid", model
        assert model.model_config["frozen"], model
        assert model.model_config["strict"], model
        for field in model.model_fields.values():
            for inner in models_in(field.annotation):
                visit(inner)

    for model in (EksPlatform, ExistingPlatform, ExperimentConfig):
        visit(model)
    assert len(seen) > 30
