"""Finds and reads the stacks of the project: a name or a file in, a validated platform or experiment out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from infra.config.platform import PlatformConfig, read_platform
from infra.config.stackfile import PREFIX, Kind, StackFile, read_stack_file, value_at
from infra.findings import Finding, InvalidStack, Where, listed, nearest
from workloads.config import read_experiment
from workloads.overrides import overridden
from workloads.programs import PROJECT
from workloads.references import experiment_references, platform_references
from workloads.resolve import Run, resolve

# A run is `<stack>-<8 hex>`, its pods at the longest `<run>-node-0-<index>-<5 letters>`: a DNS label of 63 characters.
MAX_STACK_NAME = 36


@dataclass(frozen=True, kw_only=True)
class PlatformStack:
    file: StackFile
    config: PlatformConfig


@dataclass(frozen=True, kw_only=True)
class ExperimentStack:
    file: StackFile
    run: Run


Stack = PlatformStack | ExperimentStack


def stack_files() -> list[Path]:
    """Every stack file of the project, in name order."""
    return sorted(PROJECT.glob("Pulumi.*.yaml"))


def stack_name(path: Path) -> str:
    return path.name.removeprefix("Pulumi.").removesuffix(".yaml")


def stack_path(stack: str) -> Path:
    """The file that a user means: a path, or the name of a stack of the project."""
    given = Path(stack)
    if given.is_file() or given.suffix in (".yaml", ".yml") or "/" in stack:
        return given
    return PROJECT / f"Pulumi.{stack}.yaml"


def load(path: Path, overrides: Sequence[str] = ()) -> Stack:
    """The stack of a file; raises InvalidStack with everything that is wrong with it."""
    if not path.exists() and path.parent == PROJECT:
        raise _no_such_stack(stack_name(path))
    file = overridden(read_stack_file(path), overrides)
    try:
        return _load_platform(file) if file.kind == "platform" else _load_experiment(file, path.parent)
    except InvalidStack as invalid:
        raise InvalidStack(invalid.findings, file.kind) from None


def load_experiment(path: Path, overrides: Sequence[str] = ()) -> ExperimentStack:
    """The experiment of a file; a platform is refused."""
    return experiment_of(load(path, overrides))


def experiment_of(stack: Stack) -> ExperimentStack:
    """The stack as an experiment; raises InvalidStack for a platform."""
    if isinstance(stack, PlatformStack):
        raise _of_the_other_kind(stack, "platform", "an experiment")
    return stack


def platform_of(stack: Stack) -> PlatformStack:
    """The stack as a platform; raises InvalidStack for an experiment."""
    if isinstance(stack, ExperimentStack):
        raise _of_the_other_kind(stack, "experiment", "a platform")
    return stack


def _of_the_other_kind(stack: Stack, kind: Kind, wanted: str) -> InvalidStack:
    article = "an" if kind == "experiment" else "a"
    message, fix = f"{stack.file.stack} is {article} {kind}, not {wanted}", f"name {wanted}'s stack"
    return InvalidStack([_error("TY002", Where(file=stack.file.file, key=PREFIX + kind), message, fix)])


def _load_platform(file: StackFile) -> PlatformStack:
    problems = [*platform_references(file), *_region_problems(file)]
    try:
        config = read_platform(file)
    except InvalidStack as invalid:
        raise InvalidStack(_in_order(invalid.findings + problems)) from None
    if problems:
        raise InvalidStack(_in_order(problems))
    return PlatformStack(file=file, config=config)


def _load_experiment(file: StackFile, folder: Path) -> ExperimentStack:
    problems = _name_problems(file)
    platform: PlatformStack | None = None
    named = file.body.get("platform") if isinstance(file.body, dict) else None
    if isinstance(named, str):
        try:
            platform = _platform(named, folder)
            problems += experiment_references(file, platform.config)
        except InvalidStack as invalid:
            problems += [replace(finding, where=file.where(("platform",))) for finding in invalid.findings]
    try:
        experiment = read_experiment(file)
    except InvalidStack as invalid:
        raise InvalidStack(_in_order(invalid.findings + problems)) from None
    if problems or platform is None:
        raise InvalidStack(_in_order(problems))
    run = resolve(file.stack, experiment, platform.config)
    return ExperimentStack(file=file, run=run)


def _region_problems(file: StackFile) -> list[Finding]:
    if file.region or value_at(file.body, ("target",)) != "eks":
        return []
    message, fix = "`aws:region` is missing", "add it beside `trainyard:platform`, such as `aws:region: us-east-1`"
    return [_error("TY004", Where(file=file.file, line=file.lines.get(("config",)), key="aws:region"), message, fix)]


def _name_problems(file: StackFile) -> list[Finding]:
    name = file.stack
    if len(name) <= MAX_STACK_NAME and name[:1].isalpha() and all(c.islower() or c.isdigit() or c == "-" for c in name):
        return []
    message = f'"{name}" cannot name a run: its pods and services are named after the stack'
    fix = f"rename it: lower-case letters, digits and `-`, starting with a letter, at most {MAX_STACK_NAME}"
    return [_error("TY008", Where(file=file.file), message, fix)]


def _platform(name: str, folder: Path) -> PlatformStack:
    """The platform that an experiment names: a stack file beside it, else one of the project."""
    beside = folder / f"Pulumi.{name}.yaml"
    path = beside if beside.is_file() else PROJECT / f"Pulumi.{name}.yaml"
    if not path.is_file():
        raise _no_such_stack(name, "platform")
    return _read_platform(path)


@cache
def _read_platform(path: Path) -> PlatformStack:
    """Read once, however many experiments name it."""
    file = read_stack_file(path)
    if file.kind != "platform":
        message, fix = f"`platform: {file.stack}` is an experiment", "name a platform's stack"
        raise InvalidStack([_error("TY009", Where(file=file.file), message, fix)])
    try:
        return _load_platform(file)
    except InvalidStack as invalid:
        message = f"`platform: {file.stack}` has {len(invalid.findings)} problems of its own"
        fix = f"see `python -m workloads check {file.stack}`"
        raise InvalidStack([_error("TY009", Where(file=file.file), message, fix)]) from None


def _no_such_stack(name: str, kind: str = "stack") -> InvalidStack:
    names = [stack_name(path) for path in stack_files()]
    message, fix = (
        f'no {kind} "{name}": there is no Pulumi.{name}.yaml',
        f"stacks: {listed(names)}.{nearest(name, names)}",
    )
    rule = "TY001" if kind == "stack" else "TY009"
    return InvalidStack([_error(rule, Where(file=f"Pulumi.{name}.yaml"), message, fix)])


def _error(rule: str, where: Where, message: str, fix: str) -> Finding:
    return Finding(rule=rule, severity="error", where=where, message=message, fix=fix)


def _in_order(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (finding.where.line or 0, finding.where.key or ""))
