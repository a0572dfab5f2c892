"""TY0xx: what reading a stack file refuses by itself (infra/config/, workloads/).

The errors among them cannot be waived: there is no experiment to run while one stands.
"""

from collections.abc import Iterator

from infra.aws.limits import impossible
from infra.config.platform import EksPlatform
from infra.config.stackfile import value_at
from infra.unbuilt import UNBUILT, UNBUILT_ON_EKS
from workloads.checks.registry import RULES, Problem, Rule, declare, platform_rule, rule
from workloads.resolve import Run
from workloads.stacks import PlatformStack

_READING = {
    "TY001": "The stack file, or the value of a --set, cannot be read as YAML.",
    "TY002": "The file is no stack: it must hold exactly one of trainyard:platform and trainyard:experiment.",
    "TY003": "A key that does not exist.",
    "TY004": "A key that must be there is missing.",
    "TY005": "A value of the wrong type, or out of its range.",
    "TY006": "A name that the platform does not have, or has twice.",
    "TY007": "An argument that the program does not take.",
    "TY008": "A stack name that cannot name pods.",
    "TY009": "The experiment's platform does not exist or is invalid itself.",
    "TY014": "images.lock.json cannot be read.",
    "TY015": "The program, or a module that its Settings extend, is no valid Python.",
}
for _identifier, _text in _READING.items():
    declare(Rule(id=_identifier, severity="error", text=_text))

_NOT_YET = {
    "preflight": "nodes are not tested before the program starts",
    "replace": "an edit always makes a new run",
    "tracking": "metrics go to metrics.jsonl and the log alone",
}


@rule("TY010", "warning")
def keys_have_an_effect(run: Run) -> Iterator[Problem]:
    """A key that is accepted but does nothing yet.

    The key is part of the stack file's contract, so a file that holds it stays valid; until it works, it says so.
    """
    given = run.experiment.model_fields_set
    for key, consequence in _NOT_YET.items():
        if key in given:
            yield Problem((key,), f"`{key}` has no effect yet: {consequence}", f"drop `{key}`")


@platform_rule("TY012")
def aws_would_accept(stack: PlatformStack) -> Iterator[Problem]:
    """A value that is well-formed by itself and that AWS would refuse, minutes into `pulumi up`."""
    if isinstance(stack.config, EksPlatform):
        assert stack.file.region is not None  # the stack is not loaded without
        for keys, message, fix in impossible(stack.config, stack=stack.file.stack, region=stack.file.region):
            yield Problem(keys, message, fix)


@platform_rule("TY013", "warning")
def platform_keys_have_an_effect(stack: PlatformStack) -> Iterator[Problem]:
    """A key of a platform that is accepted, and whose work nothing does yet."""
    on_eks = isinstance(stack.config, EksPlatform)
    for key, consequence in (UNBUILT | UNBUILT_ON_EKS if on_eks else UNBUILT).items():
        keys = tuple(key.split("."))
        if value_at(stack.file.body, keys):
            yield Problem(keys, consequence, f"drop `{key}`, or do its work by hand")


@rule("TY011", "warning")
def waivers_name_rules(run: Run) -> Iterator[Problem]:
    """A waiver for a rule that does not exist, or that cannot be waived."""
    for identifier in run.experiment.waive:
        if identifier not in RULES:
            yield Problem(("waive", identifier), f"there is no rule {identifier}", "see `check --rules`")
        elif identifier.startswith("TY0"):
            yield Problem(("waive", identifier), f"{identifier} cannot be waived", "correct the file instead")
