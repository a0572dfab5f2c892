"""What sharding leaves on a device."""

import pytest

from workloads.memory import state_bytes


@pytest.mark.parametrize(
    ("sharding", "expected"),
    [
        ("none", 16),
        ("zero1", 8 + 8 / 4),
        ("zero2", 4 + 12 / 4),
        ("zero3", 16 / 4),
        ("fsdp", 16 / 4),
        ("hybrid", 16 / 4),
    ],
)
def test_the_state_of_a_parameter_is_what_is_whole_and_a_share_of_the_rest(sharding: str, expected: float) -> None:
    """Rajbhandari et al. 2020, figure 1, in fp32: weight 4, gradient 4, moments 8."""
    assert state_bytes(sharding, shards=4) == expected
    assert state_bytes(sharding, shards=1) == 16
