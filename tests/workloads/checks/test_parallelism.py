"""TY3xx: the arithmetic of processes, degrees and batches."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workloads.conftest import OWN_COMMAND, rules
from workloads.checks.check import StackReport

Checked = Callable[..., StackReport]
ON_A100 = {"node_group": "a100", "nodes": 2, **OWN_COMMAND}  # 2x8 processes

CASES: list[tuple[dict[str, Any], list[str]]] = [
    ({"parallelism": {"tensor": 2, "pipeline": 4}}, []),
    ({"parallelism": {"tensor": 2, "pipeline": 3}}, ["TY301"]),
    ({"parallelism": {"tensor": 8, "pipeline": 2}}, []),
    ({"parallelism": {"tensor": 16}}, ["TY303"]),
    ({"parallelism": {"tensor": 32}}, ["TY301", "TY303"]),
    ({"batch": {"global": 512, "micro": 2}, "parallelism": {"tensor": 2}}, []),
    ({"batch": {"global": 500, "micro": 2}, "parallelism": {"tensor": 2}}, ["TY302"]),
    ({"batch": {"global": 24}}, ["TY302"]),
    ({"batch": {"global": 8, "micro": 1}}, ["TY302"]),
    ({"batch": {"global": 48}, "elastic": {"min": 1, "max": 3}}, []),
    ({"batch": {"global": 64}, "elastic": {"min": 1, "max": 3}}, ["TY302"]),
    ({"processes_per_node": 8}, []),
    ({"processes_per_node": 4}, ["TY304"]),
    ({"processes_per_node": 16}, ["TY304"]),
    ({"resources": {"gpu": 4, "efa": 2}}, []),
    ({"model": {"heads": 32, "kv_heads": 8, "hidden": 4096}, "parallelism": {"tensor": 8}}, []),
    ({"model": {"heads": 32, "kv_heads": 4, "hidden": 4096}, "parallelism": {"tensor": 8}}, ["TY305"]),
    ({"model": {"heads": 12, "hidden": 1000}}, ["TY305"]),
    ({"model": {"heads": 32, "kv_heads": 5}}, ["TY305"]),
    ({"model": {"layers": 30}, "parallelism": {"pipeline": 4}}, ["TY305"]),
    ({"model": {"vocab": 50257}, "parallelism": {"tensor": 2}}, ["TY305"]),
    ({"model": {"sequence": 4096}, "parallelism": {"context": 2}}, []),
    ({"model": {"sequence": 4098}, "parallelism": {"context": 4}}, ["TY305"]),
    ({"parallelism": {"sharding": "fsdp"}}, []),
    ({"parallelism": {"sharding": "fsdp", "tensor": 8, "pipeline": 2}}, ["TY306"]),
    ({"parallelism": {"sharding": "zero2"}}, []),
    ({"parallelism": {"sharding": "zero2", "tensor": 8, "pipeline": 2}}, ["TY306"]),
    ({"parallelism": {"sharding": "hybrid"}, "nodes": 1}, ["TY306"]),
]


@pytest.mark.parametrize(("changes", "expected"), CASES, ids=[f"{changes}"[:70] for changes, _ in CASES])
def test_a_rule_fires_on_what_it_is_for_and_on_nothing_else(
    checked: Checked, changes: dict[str, Any], expected: list[str]
) -> None:
    assert sorted(set(rules(checked(**{**ON_A100, **changes})))) == expected


def test_the_nearest_batches_are_named_and_would_pass(checked: Checked) -> None:
    report = checked(**ON_A100, batch={"global": 500, "micro": 3})
    (finding,) = [finding for finding in report.findings if finding.rule == "TY302"]
    assert "480 or 528" in finding.fix
    for batch in (480, 528):
        assert rules(checked(**ON_A100, batch={"global": batch, "micro": 3})) == []


def test_neuron_cores_count_as_processes(checked: Checked) -> None:
    on_trainium = {"node_group": "trn1", "nodes": 1, **OWN_COMMAND}
    assert rules(checked(**on_trainium, processes_per_node=32)) == []
    assert rules(checked(**on_trainium, processes_per_node=16)) == ["TY304"]


@given(
    tensor=st.sampled_from([1, 2, 3, 4, 8, 16]),
    pipeline=st.sampled_from([1, 2, 3, 4]),
    batch=st.integers(1, 600),
    micro=st.integers(1, 4),
)
def test_what_passes_divides_and_what_does_not_divide_does_not_pass(
    tensor: int, pipeline: int, batch: int, micro: int
) -> None:
    from tests.workloads.arithmetic import failing_rules

    failing = failing_rules(tensor=tensor, pipeline=pipeline, batch=batch, micro=micro)
    divides_world = 16 % (tensor * pipeline) == 0
    assert ("TY301" in failing) == (not divides_world)
    assert ("TY303" in failing) == (8 % tensor != 0)
    if divides_world:
        assert ("TY302" in failing) == (batch % (micro * 16 // (tensor * pipeline)) != 0)
