"""What `check` prints for people: quiet when all is well, exact when not, coloured only on a terminal."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from infra.findings import Finding, Severity
from workloads.checks.check import StackReport
from workloads.checks.registry import FAMILIES, Rule

_LOG_COLUMNS = 140  # a file or a CI log has no width of its own
_STYLES: dict[Severity, str] = {"error": "bold red", "warning": "yellow", "info": "dim"}


def console_for(stream: TextIO) -> Console:
    """Colour and wrapping on a terminal only."""
    console = Console(file=stream, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = _LOG_COLUMNS
    return console


def show_reports(reports: Sequence[StackReport]) -> None:
    """One line per stack, then the findings of each."""
    console = console_for(sys.stdout)
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for column, justify in (("stack", "left"), ("kind", "left"), ("$/hour", "right"), ("$/run", "right")):
        table.add_column(column, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("memory per device", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for report in reports:
        table.add_row(
            report.stack,
            report.kind or "?",
            _dollars_per_hour(report),
            _dollars(report.cost.usd_per_run),
            _memory(report),
            _verdict(report),
        )
    console.print(table)
    for report in reports:
        show_findings([finding for finding in report.findings if finding.severity != "info"])


def show_findings(findings: Sequence[Finding], stream: TextIO = sys.stdout) -> None:
    """A finding is two lines: where and what, then the fix."""
    console = console_for(stream)
    for finding in findings:
        line = Text()
        if finding.waived is None:
            line.append(f"{finding.severity} {finding.rule}", style=_STYLES[finding.severity])
        else:
            line.append(f"waived {finding.rule}", style="dim")
        line.append(f"  {finding.where}: ", style="bold")
        line.append(finding.message)
        console.print(line)
        remedy = f"waived: {finding.waived}" if finding.waived else f"fix: {finding.fix}"
        console.print(Text(f"    {remedy}", style="dim" if finding.waived else ""))


def show_rules(rules: Sequence[Rule], *, as_json: bool) -> None:
    """Every rule with its family and first line."""
    rules = sorted(rules, key=lambda rule: rule.id)
    if as_json:
        fields = ("id", "severity", "text")
        print(
            json.dumps(
                [{key: value for key, value in asdict(rule).items() if key in fields} for rule in rules], indent=2
            )
        )
        return
    console = console_for(sys.stdout)
    for digit, family in FAMILIES.items():
        members = [rule for rule in rules if rule.id[2] == digit]
        if members:
            console.print(Text(f"TY{digit}xx  {family}", style="bold"))
        for rule in members:
            console.print(Text(f"  {rule.id}  {rule.severity:<7}  {rule.title}"))


def _dollars(usd: float | None) -> str:
    return "–" if usd is None else f"{usd:,.2f}"


def _dollars_per_hour(report: StackReport) -> str:
    least, most = report.cost.usd_per_hour, report.cost.usd_per_hour_at_most
    return f"{_dollars(least)} to {_dollars(most)}" if report.kind == "platform" and least != most else _dollars(least)


def _memory(report: StackReport) -> str:
    memory = report.memory
    if memory.per_device_gib is None or memory.device_gib is None:
        return "–"
    return f"{memory.per_device_gib:g} of {memory.device_gib:g} GiB, {memory.verdict}"


def _verdict(report: StackReport) -> Text:
    errors = sum(finding.severity == "error" for finding in report.standing)
    warnings = sum(finding.severity == "warning" for finding in report.standing)
    if errors:
        return Text(f"{errors} error{'s' * (errors > 1)}", style=_STYLES["error"])
    if warnings:
        return Text(f"ok, {warnings} warning{'s' * (warnings > 1)}", style=_STYLES["warning"])
    return Text("ok", style="green")
