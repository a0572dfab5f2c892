"""A VPC's ranges, whatever its size and number of zones."""

from ipaddress import ip_network
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.aws.subnets import plan_subnets
from infra.config.model import Rejected


@given(prefix=st.integers(16, 21), num_zones=st.integers(2, 6))
def test_subnets_lie_inside_the_vpc_and_never_overlap(prefix: int, num_zones: int) -> None:
    cidr = f"10.32.0.0/{prefix}"
    plan = plan_subnets(cidr, [f"zone-{index}" for index in range(num_zones)])
    ranges = [ip_network(subnet) for zone in plan for subnet in (zone.private, zone.public)]
    assert len(ranges) == 2 * num_zones
    assert all(found.subnet_of(ip_network(cidr)) for found in ranges)
    assert not any(one.overlaps(other) for one, other in combinations(ranges, 2))


@given(prefix=st.integers(16, 21), num_zones=st.integers(2, 6))
def test_pods_have_at_least_half_of_all_addresses(prefix: int, num_zones: int) -> None:
    cidr = f"10.32.0.0/{prefix}"
    plan = plan_subnets(cidr, [f"zone-{index}" for index in range(num_zones)])
    assert sum(ip_network(zone.private).num_addresses for zone in plan) * 2 >= ip_network(cidr).num_addresses


def test_a_third_zone_moves_nobodys_addresses() -> None:
    assert plan_subnets("10.0.0.0/16", ["a", "b", "c"])[:2] == plan_subnets("10.0.0.0/16", ["a", "b"])


@pytest.mark.parametrize(
    ("cidr", "zones", "fix"),
    [
        ("10.0.0.0/24", 2, "/22 or larger"),
        ("10.0.0.0/22", 4, "/21 or larger"),
        ("10.0.0.0/8", 2, "10.0.0.0/16"),
        ("10.0.7.0/16", 2, "10.0.0.0/16"),
        ("10.0.300.0/16", 2, "10.0.0.0/16"),
    ],
)
def test_a_range_that_cannot_be_cut_is_refused_with_one_that_can(cidr: str, zones: int, fix: str) -> None:
    with pytest.raises(Rejected) as refused:
        plan_subnets(cidr, [f"zone-{index}" for index in range(zones)])
    assert cidr in str(refused.value)
    assert fix in refused.value.fix
