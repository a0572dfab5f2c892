"""Relations that hold across the instance table, whatever the figures."""

from infra.instances import INSTANCE_TYPES
from infra.nodes import shape_of


def test_a_full_size_type_has_as_many_times_the_accelerators_as_its_price_suggests() -> None:
    assert INSTANCE_TYPES["g5.48xlarge"].num_accelerators == 8 * INSTANCE_TYPES["g5.xlarge"].num_accelerators
    assert INSTANCE_TYPES["trn1.32xlarge"].num_accelerators == 16 * INSTANCE_TYPES["trn1.2xlarge"].num_accelerators
    assert INSTANCE_TYPES["p4de.24xlarge"].accelerator != INSTANCE_TYPES["p4d.24xlarge"].accelerator


def test_efa_counts_are_those_that_aws_documents() -> None:
    documented = {
        "p4d.24xlarge": 4,
        "p4de.24xlarge": 4,
        "p5.48xlarge": 32,
        "p5e.48xlarge": 32,
        "p5en.48xlarge": 16,
        "p6-b200.48xlarge": 8,
        "trn1.32xlarge": 8,
        "trn1n.32xlarge": 16,
        "trn2.48xlarge": 16,
        "g6e.48xlarge": 4,
        "g5.xlarge": 0,
        "c5.9xlarge": 0,
    }
    assert {name: INSTANCE_TYPES[name].num_efa for name in documented} == documented


def test_only_types_without_an_accelerator_have_none_counted() -> None:
    for row in INSTANCE_TYPES.values():
        assert (row.accelerator is None) == (row.num_accelerators == 0), row.name


def test_pods_never_get_the_whole_of_a_node() -> None:
    for row in INSTANCE_TYPES.values():
        shape = shape_of(row, efa=True)
        assert 0 < shape.cpu < row.vcpu, row.name
        assert 0 < shape.memory_gib < row.allocatable_memory_gib < row.memory_gib, row.name


def test_a_shape_has_efa_only_where_the_group_does() -> None:
    row = INSTANCE_TYPES["p5.48xlarge"]
    assert shape_of(row, efa=False).efa == 0
    assert shape_of(row, efa=True).efa == 32
