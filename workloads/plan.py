"""What a stack would create: the real program, run under Pulumi's own mocks.

No CLI, no provider plugin, no cluster and no credentials: the resources are those that the program registers, with
unknown outputs where a cloud would answer. `pulumi preview` adds the comparison with what exists.
"""

import json
import logging
import runpy
import sys
from collections import Counter
from dataclasses import asdict, dataclass

from pulumi.runtime import mocks
from rich.table import Table

from workloads.checks.check import StackReport
from workloads.cost import Cost
from workloads.programs import PROJECT
from workloads.show import console_for

_PROJECT_NAME = "trainyard"
# What the program asks of an account; the answers only end up inside names and policies.
_ANSWERS: dict[str, dict[str, object]] = {
    "aws:index/getCallerIdentity:getCallerIdentity": {"accountId": "000000000000"},
    "aws:index/getPartition:getPartition": {"partition": "aws"},
}


@dataclass(frozen=True, kw_only=True)
class PlannedResource:
    type: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The resources that a stack registers, in order, and what they cost."""

    stack: str
    resources: list[PlannedResource]
    cost: Cost


class _Recorder(mocks.Mocks):
    """Answers every registration with its own inputs, as a cloud that makes exactly what it is asked for."""

    def __init__(self) -> None:
        self.resources: list[PlannedResource] = []

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, object]]:
        if args.typ != "pulumi:pulumi:Stack":
            self.resources.append(PlannedResource(type=args.typ, name=args.name))
        return f"{args.name}-id", dict(args.inputs)

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, object], list[tuple[str, str]]]:
        return _ANSWERS[args.token], []


def plan_of(report: StackReport) -> Plan:
    """Runs the program for a checked stack of the project."""
    recorder = _Recorder()
    mocks.set_mocks(recorder, project=_PROJECT_NAME, stack=report.stack, preview=True, logger=_unheard())
    mocks.test(_run_program)()  # type: ignore[no-untyped-call]
    return Plan(stack=report.stack, resources=recorder.resources, cost=report.cost)


def _unheard() -> logging.Logger:
    """The program logs what its checks find, which `check` has shown."""
    logger = logging.Logger(_PROJECT_NAME)
    logger.addHandler(logging.NullHandler())
    return logger


def _run_program() -> None:
    runpy.run_path(str(PROJECT / "__main__.py"), run_name="__main__")


def show_plan(plan: Plan, *, as_json: bool) -> None:
    """Resources by kind, components (our own types) first."""
    if as_json:
        print(json.dumps(asdict(plan), indent=2))
        return
    kinds = Counter(resource.type for resource in plan.resources)
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("count", justify="right")
    table.add_column("kind")
    for kind, count in sorted(kinds.items(), key=lambda item: (not item[0].startswith("trainyard:"), item[0])):
        table.add_row(str(count), kind)
    console = console_for(sys.stdout)
    price = "unknown price" if plan.cost.usd_per_hour is None else f"${plan.cost.usd_per_hour:,.2f} per hour"
    console.print(f"[bold]{plan.stack}[/bold]: {len(plan.resources)} resources, {price}")
    console.print(table)
