"""TY7xx: a budget is held against the longest that a run may take."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.workloads.conftest import rules
from workloads.checks.check import StackReport

Checked = Callable[..., StackReport]

# Two m5.4xlarge, at $0.768 an hour each.
CASES: list[tuple[dict[str, Any], float, list[str]]] = [
    ({"launcher": "indexed-job", "max_hours": 10, "restarts": 3}, 15.40, []),
    ({"launcher": "indexed-job", "max_hours": 10, "restarts": 3}, 15.30, ["TY701"]),
    ({"launcher": "volcano-job", "max_hours": 10, "restarts": 3}, 61.50, []),
    ({"launcher": "volcano-job", "max_hours": 10, "restarts": 3}, 61.40, ["TY701"]),
    ({"launcher": "volcano-job", "max_hours": 10, "restarts": 0}, 15.40, []),
]


@pytest.mark.parametrize(("changes", "max_usd", "expected"), CASES)
def test_a_run_stays_within_its_budget_to_the_last_start(
    checked: Checked, changes: dict[str, Any], max_usd: float, expected: list[str]
) -> None:
    report = checked(nodes=2, resources={"cpu": 15}, budget={"max_usd": max_usd}, **changes)
    assert rules(report) == expected
