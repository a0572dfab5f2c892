"""From the stack file's keys to a command line, and from a program's text to the flags it takes."""

import ast
from pathlib import Path

import pytest

from workloads.flags import arguments, derived_flags
from workloads.programs import PROJECT, Flag, flags_of, program_modules

LIBRARIES_OF_OTHER_IMAGES = {"keras", "paddle", "xgboost"}


def imported_by(module: str) -> set[str]:
    """The libraries that a program's first lines ask for."""
    tree = ast.parse((PROJECT / f"{module.replace('.', '/')}.py").read_text())
    return {alias.name.partition(".")[0] for node in tree.body if isinstance(node, ast.Import) for alias in node.names}


def test_values_become_flags_as_the_contract_says() -> None:
    assert arguments({"steps": 1000, "lr": 3e-4, "compile": True, "off": False, "none": None, "path": ["a", "b"]}) == [
        *("--steps", "1000", "--lr", "0.0003", "--compile", "--path", "a", "--path", "b")
    ]


def test_degrees_of_one_need_no_flag() -> None:
    assert derived_flags({"parallelism": {"tensor": 1, "sharding": "none"}}) == {}
    assert derived_flags({"parallelism": {"tensor": 2}}) == {"tensor": ("parallelism", "tensor")}


def test_a_run_that_shall_not_resume_is_told_so() -> None:
    assert derived_flags({"checkpoint": {"resume": False}}) == {"no-resume": ("checkpoint", "resume")}
    assert derived_flags({"checkpoint": {"resume": True}}) == {}


def test_every_program_has_readable_settings_with_the_flags_of_all() -> None:
    modules = program_modules()
    assert "training.mnist" in modules
    for module in modules:
        assert {"steps", "checkpoint-path", "checkpoint-every-steps", "no-resume"} <= set(flags_of(module)), module


def test_the_flags_read_from_the_text_are_those_that_the_program_really_takes() -> None:
    import importlib
    from dataclasses import fields

    for module in program_modules():
        if LIBRARIES_OF_OTHER_IMAGES & imported_by(module):
            continue
        settings = importlib.import_module(module).Settings
        assert {field.name.replace("_", "-") for field in fields(settings)} == set(flags_of(module)), module


@pytest.mark.parametrize(
    ("flag", "value", "accepted"),
    [
        (Flag(name="n", types=frozenset({"int"})), 3, True),
        (Flag(name="n", types=frozenset({"int"})), 3.0, False),
        (Flag(name="n", types=frozenset({"int"})), True, False),
        (Flag(name="n", types=frozenset({"int"})), [1, 2], False),
        (Flag(name="n", types=frozenset({"int"}), repeats=True), [1, 2], True),
        (Flag(name="n", types=frozenset({"float"})), 3, True),
        (Flag(name="n", types=frozenset({"bool"})), True, True),
        (Flag(name="n", types=frozenset({"bool"})), "yes", False),
        (Flag(name="n", types=frozenset({"str"})), "x", True),
        (Flag(name="n", types=frozenset({"str"})), 3, True),
        (Flag(name="n", types=frozenset({"str"}), choices=("a", "b")), "a", True),
        (Flag(name="n", types=frozenset({"str"}), choices=("a", "b")), "c", False),
    ],
)
def test_a_flag_accepts_what_its_type_says(flag: Flag, value: object, accepted: bool) -> None:
    assert flag.accepts(value) is accepted


def test_a_program_file_is_not_imported_to_read_its_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workloads import programs

    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "odd.py").write_text(
        "raise SystemExit('imported')\n"
        "class Base:\n    steps: int = 1\n"
        "class Settings(Base):\n    mode: Literal['a', 'b'] = 'a'\n    path: Path | None = None\n    tags: list[str]\n"
    )
    monkeypatch.setattr(programs, "PROJECT", tmp_path)
    flags = programs.flags_of.__wrapped__("training.odd")
    assert list(flags) == ["steps", "mode", "path", "tags"]
    assert flags["mode"].choices == ("a", "b")
    assert flags["tags"].repeats
    assert flags["tags"].required
    assert (PROJECT / "training" / "mnist.py").is_file()
