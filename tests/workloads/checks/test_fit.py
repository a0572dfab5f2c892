"""TY1xx: each rule fires on what it is for, at the boundary, and is silent beside it."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.workloads.conftest import OWN_COMMAND, rules
from workloads.checks.check import StackReport

Checked = Callable[..., StackReport]

CASES: list[tuple[dict[str, Any], list[str]]] = [
    ({"node_group": "a100"}, []),
    ({"node_group": "a100", "resources": {"gpu": 9}}, ["TY101"]),
    ({"node_group": "cpu", "resources": {"gpu": 1}}, ["TY101"]),
    ({"node_group": "a100", "resources": {"efa": 4}}, []),
    ({"node_group": "a100", "resources": {"efa": 5}}, ["TY102"]),
    ({"node_group": "h100", "resources": {"efa": 32}}, []),
    ({"node_group": "a100-tcp", "resources": {"efa": 4}}, ["TY102"]),
    ({"node_group": "trn1", "resources": {"neuron": 17}}, ["TY103"]),
    ({"node_group": "cpu", "resources": {"cpu": 15}}, []),
    ({"node_group": "cpu", "resources": {"cpu": 16}}, ["TY104"]),
    ({"node_group": "a100", "resources": {"memory_gib": 1056}}, []),
    ({"node_group": "a100", "resources": {"memory_gib": 1100}}, ["TY105"]),
    ({"node_group": "a100", "nodes": 4}, []),
    ({"node_group": "a100", "nodes": 5}, ["TY106"]),
    ({"node_group": "a100", "nodes": 32, "resources": {"gpu": 1, "efa": 0}}, []),
    ({"node_group": "a100", "nodes": 33, "resources": {"gpu": 1, "efa": 0}}, ["TY106"]),
    ({"node_group": "gpu-pool", "nodes": 5}, ["TY106", "TY107"]),
    ({"node_group": "cpu-pool", "nodes": 200}, []),
    ({"node_group": "cpu", "resources": {"memory_gib": 4, "shm_gib": 4}}, ["TY108"]),
    ({"node_group": "cpu", "resources": {"memory_gib": 4, "shm_gib": 3.9}}, []),
    ({"node_group": "gpu-pool", "resources": {"hugepages_2mi_mib": 512}}, ["TY109"]),
    ({"node_group": "a100", "resources": {"hugepages_2mi_mib": 512}}, []),
    ({"node_group": "a100-tcp", "fabric": "efa"}, ["TY110"]),
    ({"node_group": "cpu", "fabric": "efa"}, ["TY110"]),
    ({"node_group": "a100", "fabric": "efa", "nodes": 1}, ["TY110"]),
    ({"node_group": "a100", "fabric": "efa", "resources": {"efa": 0}}, ["TY110"]),
    ({"node_group": "a100", "fabric": "efa"}, []),
    ({"node_group": "t4", **OWN_COMMAND, "precision": "bf16"}, ["TY111"]),
    ({"node_group": "t4", **OWN_COMMAND, "precision": "fp16"}, []),
    ({"node_group": "a100", **OWN_COMMAND, "precision": "fp8"}, ["TY111"]),
    ({"node_group": "h100", **OWN_COMMAND, "precision": "fp8"}, []),
    ({"node_group": "cpu", **OWN_COMMAND, "precision": "bf16"}, []),
    ({"node_group": "a100", "nodes": 1, "resources": {"gpu": 5, "efa": 0}}, ["TY112"]),
    ({"node_group": "a100", "resources": {"gpu": 0}}, ["TY112"]),
    ({"node_group": "h100", "resources": {"efa": 16}}, ["TY113"]),
]


@pytest.mark.parametrize(("changes", "expected"), CASES, ids=[f"{changes}"[:70] for changes, _ in CASES])
def test_a_rule_fires_on_what_it_is_for_and_on_nothing_else(
    checked: Checked, changes: dict[str, Any], expected: list[str]
) -> None:
    assert sorted(set(rules(checked(**changes)))) == sorted(expected)


def test_a_finding_tells_what_was_asked_what_there_is_and_what_to_do(checked: Checked) -> None:
    report = checked(node_group="a100", resources={"efa": 8})
    (finding,) = [finding for finding in report.findings if finding.rule == "TY102"]
    assert finding.where.key == "resources.efa"
    assert "8 EFA interfaces" in finding.message
    assert "p4d.24xlarge" in finding.message
    assert "ask for 4 at most" in finding.fix
    assert report.exit_code == 1


def test_a_resource_that_the_group_lacks_is_offered_where_the_platform_has_it(checked: Checked) -> None:
    report = checked(node_group="a100-tcp", fabric="efa")
    (finding,) = [finding for finding in report.findings if finding.rule == "TY110"]
    assert "set `efa: true` on `a100-tcp`" in finding.fix
    report = checked(node_group="cpu", resources={"gpu": 2})
    (finding,) = [finding for finding in report.findings if finding.rule == "TY101"]
    assert "a100" in finding.fix


def test_a_waiver_lets_the_stack_pass_and_shows_its_reason(checked: Checked) -> None:
    report = checked(node_group="a100", resources={"efa": 8}, waive={"TY102": "driver test"})
    (finding,) = [finding for finding in report.findings if finding.rule == "TY102"]
    assert finding.waived == "driver test"
    assert report.exit_code == 0


def test_a_waiver_for_no_rule_or_for_a_reading_error_is_pointed_out(checked: Checked) -> None:
    report = checked(waive={"TY999": "x", "TY005": "y"})
    assert rules(report) == ["TY011", "TY011"]
    assert report.exit_code == 0


def test_a_key_without_an_effect_says_so(checked: Checked) -> None:
    assert rules(checked(preflight=True)) == ["TY010"]
