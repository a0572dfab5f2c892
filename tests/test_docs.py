"""The documentation says what the code does."""

import re
from pathlib import Path

import pytest

from workloads.checks.registry import RULES
from workloads.launchers.registry import LAUNCHERS
from workloads.programs import PROJECT, program_modules
from workloads.reference import generated_files
from workloads.stacks import stack_files, stack_name


@pytest.mark.parametrize("path", sorted(generated_files()), ids=lambda path: path.name)
def test_generated_documentation_is_current(path: Path) -> None:
    assert path.read_text() == generated_files()[path], "run `make golden`"


def test_every_rule_is_documented_in_a_sentence_and_unique() -> None:
    for rule in RULES.values():
        assert rule.title.endswith("."), rule.id
        assert len(rule.title) > 20, rule.id


def test_the_readme_lists_every_stack_launcher_and_program() -> None:
    readme = (PROJECT / "README.md").read_text()
    for name in [*map(stack_name, stack_files()), *LAUNCHERS, *program_modules()]:
        assert f"`{name}`" in readme, name


def test_every_pinned_dependency_has_its_reason() -> None:
    reasons = (PROJECT / "docs/dependencies.md").read_text()
    files = [PROJECT / "requirements.txt", PROJECT / "requirements-dev.txt", PROJECT / "infra/requirements.txt"]
    files += sorted((PROJECT / "training/requirements").glob("*.txt"))
    for file in files:
        for line in file.read_text().splitlines():
            if line and not line.startswith(("#", "-r")):
                pinned = re.fullmatch(r"([A-Za-z0-9-]+)(\[[a-z]+\])?==\S+", line)
                assert pinned, f"{file.name}: {line} is no exact pin"
                assert f"`{pinned[1]}`" in reasons, pinned[1]


def test_links_between_documents_lead_somewhere() -> None:
    for document in [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if not target.startswith("http"):
                assert (document.parent / target).exists(), f"{document.name}: {target}"
