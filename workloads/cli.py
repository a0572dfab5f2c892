"""The verbs. Each is a few lines here: parse, call the module that does it, show, exit.

Imports that cost time (Pulumi, matplotlib) stay inside the verbs that need them: `check` is typed often.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer
from typer.core import TyperCommand

from infra.findings import InvalidStack
from workloads.checks.check import StackReport
from workloads.checks.check import check as check_stack
from workloads.checks.registry import RULES
from workloads.show import show_findings, show_reports, show_rules
from workloads.stacks import (
    ExperimentStack,
    Stack,
    experiment_of,
    load_experiment,
    platform_of,
    stack_files,
    stack_path,
)

app = typer.Typer(
    help="Check, render, run and watch experiments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

StackArgument = Annotated[str, typer.Argument(metavar="STACK", help="A stack's name, or a stack file.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key of the experiment for this call.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def check(
    stacks: Annotated[list[str] | None, typer.Argument(metavar="STACK", help="Default: every stack.")] = None,
    as_json: JsonOption = False,
    overrides: SetOption = None,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules instead.")] = False,
) -> None:
    """Check stacks offline: findings, dollars per hour, memory. Exit 0: no errors, 1: errors, 2: a stack is invalid."""
    if rules:
        show_rules(list(RULES.values()), as_json=as_json)
        return
    paths = [stack_path(stack) for stack in stacks] if stacks else stack_files()
    reports = [check_stack(path, overrides or ()) for path in paths]
    if as_json:
        print(json.dumps({"stacks": [_as_json(report) for report in reports]}, indent=2))
    else:
        show_reports(reports)
    sys.exit(max((report.exit_code for report in reports), default=0))


@app.command()
def render(
    stack: StackArgument,
    output: Annotated[Path | None, typer.Option("-o", metavar="DIR", help="Write one file per object.")] = None,
    overrides: SetOption = None,
) -> None:
    """Print the exact manifests of an experiment as YAML."""
    from workloads.render import as_yaml, write_files

    try:
        run = experiment_of(_stack_of(_checked(stack, overrides))).run
    except InvalidStack as invalid:
        _refuse(invalid)
    if output is None:
        sys.stdout.write(as_yaml(run))
    else:
        for path in write_files(run, output):
            print(path)


@app.command()
def run(
    stack: StackArgument,
    processes: Annotated[int | None, typer.Option(min=1, help="Processes. Default: the experiment's, or 2.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Stop after this step.")] = None,
    folder: Annotated[Path | None, typer.Option(metavar="DIR", help="Default: runs/STACK.")] = None,
    overrides: SetOption = None,
) -> None:
    """Run an experiment on this machine; it resumes unless it has finished."""
    from workloads.local import run_locally

    sys.exit(run_locally(_experiment(stack, overrides), processes=processes, steps=steps, folder=folder))


@app.command()
def plan(stack: StackArgument, as_json: JsonOption = False) -> None:
    """Print what `pulumi up` would create, by kind, without the Pulumi CLI, a cluster or credentials."""
    from workloads.plan import plan_of, show_plan

    show_plan(plan_of(_checked(stack)), as_json=as_json)


class _WithExtra(TyperCommand):
    """A verb whose words after `--` belong to another program; they become the context's `obj`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own = args[: args.index("--")] if "--" in args else args
        ctx.obj = args[len(own) + 1 :]
        return super().parse_args(ctx, own)


@app.command(cls=_WithExtra, epilog="What follows `--` goes to the tool's build command.")
def build(
    context: typer.Context,
    platform: Annotated[str, typer.Option(metavar="STACK", help="The platform whose registry gets them.")],
    images: Annotated[list[str] | None, typer.Argument(metavar="IMAGE", help="Default: all it holds.")] = None,
    tool: Annotated[Literal["buildah", "docker"] | None, typer.Option(help="Default: what is installed.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Build what is there already, from scratch.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show what the tool says.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Build and push a platform's images, and record them in images.lock.json."""
    from workloads.build import BuildOptions, build_images
    from workloads.build_tools import BuildFailed

    options = BuildOptions(tool=tool, force=force, verbose=verbose, extra=context.obj)
    try:
        build_images(platform_of(_stack_of(_checked(platform))), images or [], options, as_json=as_json)
    except InvalidStack as invalid:
        _refuse(invalid)
    except BuildFailed as failure:
        print(f"{failure.output}error: {failure.message}\n    fix: {failure.fix}", file=sys.stderr)
        sys.exit(failure.exit_code)


@app.command()
def schema(
    output: Annotated[Path | None, typer.Option("-o", metavar="FILE", help="Write it there.")] = None,
) -> None:
    """Print the JSON Schema of stack files, for editors."""
    from workloads.schema import stack_schema

    text = json.dumps(stack_schema(), indent=2) + "\n"
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text)


def _checked(stack: str, overrides: list[str] | None = None) -> StackReport:
    """The report of a stack without errors; with errors, they are shown and the verb ends."""
    report = check_stack(stack_path(stack), overrides or ())
    if report.exit_code:
        show_findings(report.findings, stream=sys.stderr)
        sys.exit(report.exit_code)
    return report


def _stack_of(report: StackReport) -> Stack:
    assert report.loaded is not None  # a report without errors has its stack
    return report.loaded


def _experiment(stack: str, overrides: list[str] | None) -> ExperimentStack:
    try:
        return load_experiment(stack_path(stack), overrides or ())
    except InvalidStack as invalid:
        _refuse(invalid)


def _refuse(invalid: InvalidStack) -> NoReturn:
    show_findings(invalid.findings, stream=sys.stderr)
    sys.exit(2)


def _as_json(report: StackReport) -> dict[str, object]:
    return {
        "stack": report.stack,
        "kind": report.kind,
        "findings": [asdict(finding) for finding in report.findings],
        "cost": asdict(report.cost),
        "memory": asdict(report.memory),
    }
