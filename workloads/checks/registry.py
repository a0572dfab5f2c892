"""How a rule is declared, listed and run."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from infra.config.stackfile import KeyPath
from infra.findings import Finding, Severity
from workloads.resolve import Run
from workloads.stacks import ExperimentStack, PlatformStack, Stack

FAMILIES = {
    "0": "reading and names",
    "1": "fit to the node group",
    "2": "fabric",
    "3": "parallelism and batch",
    "4": "memory",
    "5": "durability",
    "6": "operators and scheduling",
    "7": "cost",
    "8": "security",
}


@dataclass(frozen=True)
class Problem:
    """What a rule has to say: the key at fault, what is wrong with it, what would be right."""

    keys: KeyPath
    message: str
    fix: str


RunCheck = Callable[[Run], Iterator[Problem]]
PlatformCheck = Callable[[PlatformStack], Iterator[Problem]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Documented by its docstring; without a check, reading a stack file enforces it."""

    id: str
    severity: Severity
    text: str
    check_run: RunCheck | None = None
    check_platform: PlatformCheck | None = None

    @property
    def title(self) -> str:
        return self.text.splitlines()[0]


RULES: dict[str, Rule] = {}


def declare(rule: Rule) -> None:
    if rule.id in RULES:
        raise ValueError(f"{rule.id} is declared twice")
    RULES[rule.id] = rule


def rule(identifier: str, severity: Severity = "error") -> Callable[[RunCheck], RunCheck]:
    """Declares a rule over experiments."""

    def register(check: RunCheck) -> RunCheck:
        declare(Rule(id=identifier, severity=severity, text=inspect.getdoc(check) or "", check_run=check))
        return check

    return register


def platform_rule(identifier: str, severity: Severity = "error") -> Callable[[PlatformCheck], PlatformCheck]:
    """Declares a rule over platforms."""

    def register(check: PlatformCheck) -> PlatformCheck:
        declare(Rule(id=identifier, severity=severity, text=inspect.getdoc(check) or "", check_platform=check))
        return check

    return register


def findings_of(stack: Stack) -> list[Finding]:
    """Every rule's findings on a stack, in the order of rule ids."""
    waived = stack.run.experiment.waive if isinstance(stack, ExperimentStack) else {}
    return [
        Finding(
            rule=rule.id,
            severity=rule.severity,
            where=stack.file.where(problem.keys),
            message=problem.message,
            fix=problem.fix,
            waived=waived.get(rule.id),
        )
        for _, rule in sorted(RULES.items())
        for problem in _problems(rule, stack)
    ]


def _problems(rule: Rule, stack: Stack) -> Iterator[Problem]:
    if isinstance(stack, ExperimentStack):
        return rule.check_run(stack.run) if rule.check_run else iter(())
    return rule.check_platform(stack) if rule.check_platform else iter(())
