"""What a check says: one finding, where it is in the stack file, and what would make it go away."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, kw_only=True)
class Where:
    """A place in a stack file: `key` is the dotted path as a user would type it after `--set`."""

    file: str
    line: int | None = None
    key: str | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return place if self.key is None else f"{place} {self.key}"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong or worth knowing, with the remedy."""

    rule: str
    severity: Severity
    where: Where
    message: str
    fix: str
    waived: str | None = field(default=None)
    """The reason given under `waive:`; None when the finding stands."""


class InvalidStack(Exception):
    """A stack file that cannot be used; carries everything that is wrong with it."""

    def __init__(self, findings: list[Finding], kind: Literal["platform", "experiment"] | None = None) -> None:
        super().__init__(f"{len(findings)} problems")
        self.findings = findings
        self.kind = kind
        """What the file says it is, as far as it could be read."""


def nearest(given: object, allowed: Iterable[str]) -> str:
    """` Did you mean "x"?` when something allowed is spelled much alike, else nothing."""
    close = difflib.get_close_matches(str(given), list(allowed), n=1, cutoff=0.6)
    return f' Did you mean "{close[0]}"?' if close else ""


def listed(names: Iterable[str]) -> str:
    """Names as a sentence holds them; says so when there are none."""
    return ", ".join(names) or "none are declared"
