"""Runs every rule over stacks and gathers what `check` reports."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.config.stackfile import Kind
from infra.findings import Finding, InvalidStack
from workloads.checks import costs, durability, fit, launching, parallelism, reading, scheduling, security  # noqa: F401 (each declares rules)
from workloads.checks.registry import findings_of
from workloads.cost import Cost, cost_of, platform_cost_of
from workloads.memory import Memory, memory_of
from workloads.stacks import PlatformStack, Stack, load, stack_name

_NO_MEMORY = Memory(per_device_gib=None, device_gib=None, verdict="unknown")
_NO_COST = Cost(usd_per_hour=None, usd_per_run=None)


@dataclass(frozen=True, kw_only=True)
class StackReport:
    """What there is to say about one stack."""

    stack: str
    kind: Kind | None
    """None when the file does not say."""
    findings: list[Finding]
    loaded: Stack | None = None
    """The stack itself; None when it is invalid."""
    cost: Cost = _NO_COST
    memory: Memory = _NO_MEMORY

    @property
    def standing(self) -> list[Finding]:
        """The findings that nobody waived."""
        return [finding for finding in self.findings if finding.waived is None]

    @property
    def exit_code(self) -> int:
        """2: cannot be read or is invalid; 1: a rule's error stands; 0: neither."""
        errors = [finding for finding in self.standing if finding.severity == "error"]
        if any(finding.rule.startswith("TY0") for finding in errors):
            return 2
        return 1 if errors else 0


def check(path: Path, overrides: Sequence[str] = ()) -> StackReport:
    """Everything that can be known of a stack offline."""
    try:
        stack = load(path, overrides)
        findings = findings_of(stack)
    except InvalidStack as invalid:
        return StackReport(stack=stack_name(path), kind=invalid.kind, findings=invalid.findings)
    name = stack.file.stack
    if isinstance(stack, PlatformStack):
        return StackReport(stack=name, kind="platform", findings=findings, loaded=stack, cost=platform_cost_of(stack))
    return StackReport(
        stack=name,
        kind="experiment",
        findings=findings,
        loaded=stack,
        cost=cost_of(stack.run),
        memory=memory_of(stack.run),
    )
