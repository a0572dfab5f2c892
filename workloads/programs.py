"""What flags a program of training/ takes, read from its text.

A program declares its flags as one dataclass `Settings`. Reading that with `ast` costs milliseconds and no torch, and
turns a misspelled flag from a crash on the cluster into a finding at preview.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
TRAINING = PROJECT / "training"
_SETTINGS = "Settings"
# What programs train with, each in some images and not in others.
LIBRARIES = frozenset({"deepspeed", "horovod", "keras", "paddle", "tensorflow", "torch", "xgboost"})
_IMPORT = re.compile(r"^ *(?:import ([\w.]+)(?: as \w+)?|from ([\w.]+) import .*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Flag:
    """One field of a program's Settings."""

    name: str
    """As typed, without the dashes: `checkpoint-path`."""
    types: frozenset[str]
    """Of int, float, str, bool, None; a choice or a path is str."""
    choices: tuple[str, ...] = ()
    repeats: bool = False
    required: bool = False

    def accepts(self, value: object) -> bool:
        if isinstance(value, list):
            return self.repeats and all(self._accepts_one(item) for item in value)
        return self._accepts_one(value)

    def _accepts_one(self, value: object) -> bool:
        if isinstance(value, bool):
            return "bool" in self.types
        if isinstance(value, int):
            return bool(self.types & {"int", "float"}) or ("str" in self.types and not self.choices)
        if isinstance(value, float):
            return "float" in self.types or ("str" in self.types and not self.choices)
        return "str" in self.types and (not self.choices or value in self.choices)

    @property
    def allowed(self) -> str:
        if self.choices:
            return ", ".join(self.choices)
        words = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false"}
        one = " or ".join(words[name] for name in ("int", "float", "str", "bool") if name in self.types)
        return f"{one}, or a list of those" if self.repeats else one


def program_modules() -> list[str]:
    """The programs that can be started: modules of training/ with Settings."""
    return sorted(
        f"training.{path.stem}" for path in TRAINING.glob("*.py") if f"class {_SETTINGS}(" in path.read_text()
    )


@cache
def flags_of(module: str) -> dict[str, Flag]:
    """The flags of a program by name, those of its base classes included; raises SyntaxError where it is no Python."""
    return {flag.name: flag for flag in _fields(module, _SETTINGS)}


@cache
def libraries_of(module: str) -> frozenset[str]:
    """Of `LIBRARIES`, those that a program imports, by itself or through modules of training/."""
    known, left = {module}, [module]
    while left:
        new = _imports(left.pop()) - known
        known |= new
        left += [name for name in new if name.startswith("training.")]
    return frozenset(name.partition(".")[0] for name in known) & LIBRARIES


@cache
def _imports(module: str) -> frozenset[str]:
    path = (PROJECT / module.replace(".", "/")).with_suffix(".py")
    # Lines, not a syntax tree: one of all modules would double the time of a check.
    return (
        frozenset(first or second for first, second in _IMPORT.findall(path.read_text()))
        if path.exists()
        else frozenset()
    )


def _fields(module: str, class_name: str) -> Iterator[Flag]:
    path = (PROJECT / module.replace(".", "/")).with_suffix(".py")
    tree = ast.parse(path.read_text(), filename=path.relative_to(PROJECT).as_posix())
    imported = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for base in classes[class_name].bases:
        if isinstance(base, ast.Name) and base.id in classes:
            yield from _fields(module, base.id)
        elif isinstance(base, ast.Name) and (imported[base.id][0] or "").startswith("training"):
            yield from _fields(*imported[base.id])
    for statement in classes[class_name].body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield _flag(statement.target.id, statement.annotation, required=statement.value is None)


def _flag(name: str, annotation: ast.expr, *, required: bool) -> Flag:
    types: set[str] = set()
    choices: list[str] = []
    repeats = False

    def visit(node: ast.expr) -> None:
        nonlocal repeats
        match node:
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                visit(left)
                visit(right)
            case ast.Constant(value=None):
                types.add("None")
            case ast.Name(id="Path"):
                types.add("str")
            case ast.Name(id=identifier):
                types.add(identifier)
            case ast.Subscript(value=ast.Name(id="Literal"), slice=values):
                types.add("str")
                elements = values.elts if isinstance(values, ast.Tuple) else [values]
                choices.extend(str(ast.literal_eval(element)) for element in elements)
            case ast.Subscript(value=ast.Name(id="list" | "tuple"), slice=item):
                repeats = True
                visit(item.elts[0] if isinstance(item, ast.Tuple) else item)
            case ast.Subscript(
                value=ast.Attribute(attr="UseAppendAction") | ast.Name(id="UseAppendAction"), slice=item
            ):
                visit(item)
            case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[item, *_])):
                visit(item)
            case _:
                raise TypeError(f"{name}: a flag's type must be plain, not {ast.unparse(node)}")

    visit(annotation)
    return Flag(
        name=name.replace("_", "-"),
        types=frozenset(types),
        choices=tuple(choices),
        repeats=repeats,
        required=required,
    )
