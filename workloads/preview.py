"""The checks inside a Pulumi program: an error stops the preview before anything is registered."""

import pulumi

from infra.findings import Finding
from workloads.checks.check import check
from workloads.stacks import Stack, stack_path


def checked_stack() -> Stack:
    """The stack that Pulumi runs; raises one report of all errors, logs what is less."""
    path = stack_path(pulumi.get_stack())
    report = check(path)
    errors = [finding for finding in report.standing if finding.severity == "error"]
    if errors:
        lines = "\n".join(_two_lines(finding) for finding in errors)
        raise pulumi.RunError(f"{path.name} has {len(errors)} error{'s' * (len(errors) > 1)}:\n{lines}")
    for finding in report.findings:
        if finding.waived is not None:
            pulumi.log.warn(f"{finding.rule} waived ({finding.waived}): {finding.where}: {finding.message}")
        elif finding.severity == "warning":
            pulumi.log.warn(f"{_two_lines(finding)}")
    if report.cost.usd_per_hour is not None:
        pulumi.log.info(f"{report.stack} costs ${report.cost.usd_per_hour:,.2f} per hour ({report.cost.priced_at})")
    assert report.loaded is not None  # an invalid stack has errors
    return report.loaded


def _two_lines(finding: Finding) -> str:
    return f"{finding.rule}  {finding.where}: {finding.message}\n    fix: {finding.fix}"
