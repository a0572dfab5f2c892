"""A platform's bill."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.config.platform import EksPlatform
from infra.config.storage import FsxVolume
from infra.instances import INSTANCE_TYPES
from infra.prices import FSX_USD_PER_GB_MONTH, PlatformCost, platform_cost

SYSTEM = {"name": "system", "instance_type": "m5.xlarge", "min": 2, "max": 4, "disk_gib": 100}


def cost(region: str = "us-east-1", **keys: object) -> PlatformCost:
    body = {
        "target": "eks",
        "network": {"zones": [f"{region}a", f"{region}b"]},
        "node_groups": [SYSTEM],
        "teams": [{"name": "default", "namespace": "training"}],
        **keys,
    }
    return platform_cost(EksPlatform.model_validate(body), region)


def item(bill: PlatformCost, name: str) -> tuple[float | None, float | None]:
    (found,) = [line for line in bill.items if name in line.name]
    return found.usd_per_hour_at_minimum, found.usd_per_hour_at_maximum


def test_a_small_platform_costs_what_the_price_lists_add_up_to() -> None:
    bill = cost()
    node = 0.192 + 100 * 0.08 / 730
    fixed = 0.10 + 0.045 + 3 * 2 * 0.01
    assert bill.usd_per_hour_at_minimum == pytest.approx(fixed + 2 * node)
    assert bill.usd_per_hour_at_maximum == pytest.approx(fixed + 4 * node)


def test_a_nat_gateway_in_each_zone_is_paid_for_in_each_zone() -> None:
    network = {"zones": ["us-east-1a", "us-east-1b", "us-east-1c"], "nat": "per-zone"}
    assert item(cost(network=network), "NAT") == (pytest.approx(0.135), pytest.approx(0.135))


@given(minimum=st.integers(0, 50), more=st.integers(0, 50), name=st.sampled_from(sorted(INSTANCE_TYPES)))
def test_the_maximum_is_never_below_the_minimum(minimum: int, more: int, name: str) -> None:
    group = {"name": "group", "instance_type": name, "min": minimum, "max": minimum + more}
    bill = cost(node_groups=[SYSTEM, group])
    if bill.usd_per_hour_at_maximum is None:
        assert INSTANCE_TYPES[name].usd_per_hour is None
    else:
        assert bill.usd_per_hour_at_minimum is not None
        assert bill.usd_per_hour_at_maximum >= bill.usd_per_hour_at_minimum


def test_an_unknown_price_makes_the_sum_unknown_and_says_why() -> None:
    group = {"name": "gpu", "instance_type": "p5e.48xlarge", "max": 2}
    bill = cost(node_groups=[SYSTEM, group])
    assert bill.usd_per_hour_at_minimum is not None  # none of them runs at the minimum
    assert bill.usd_per_hour_at_maximum is None
    assert len(bill.unknown) == 1
    assert "p5e.48xlarge" in bill.unknown[0]


def test_a_pool_without_a_limit_has_no_most() -> None:
    bill = cost(node_pools=[{"name": "pool", "instance_types": ["g5.xlarge"]}])
    assert bill.usd_per_hour_at_maximum is None
    assert "limits.nodes" in bill.unknown[0]


def test_a_pool_is_counted_at_its_dearest_type() -> None:
    pool = {"name": "pool", "instance_types": ["g4dn.xlarge", "g5.xlarge"], "limits": {"nodes": 3}}
    assert item(cost(node_pools=[pool]), "pool") == (0.0, pytest.approx(3 * 1.006))


def test_a_capacity_block_is_paid_in_advance_and_its_disks_are_not() -> None:
    group = {
        "name": "block",
        "instance_type": "p5.48xlarge",
        "max": 2,
        "zone": "us-east-1a",
        "capacity": {"block": "cr-0123456789abcdef0"},
        "disk_gib": 365,
    }
    bill = cost(node_groups=[SYSTEM, group])
    assert item(bill, "block") == (0.0, pytest.approx(2 * 365 * 0.08 / 730))
    assert any("paid in advance" in line for line in bill.not_included)


def test_every_lustre_file_system_that_the_configuration_admits_has_a_price() -> None:
    deployments = get_args(FsxVolume.model_fields["deployment"].annotation)
    for deployment in deployments:
        for throughput in (None, 50, 100, 125, 200, 250, 500, 1000):
            try:
                volume = FsxVolume(
                    name="fsx", capacity_gib=1200, deployment=deployment, throughput_mb_s_per_tib=throughput
                )
            except ValueError:
                assert (deployment, throughput) not in FSX_USD_PER_GB_MONTH
            else:
                assert (volume.deployment, volume.throughput_mb_s_per_tib) in FSX_USD_PER_GB_MONTH


def test_another_region_is_said_to_have_other_prices() -> None:
    assert any("eu-west-1" in line for line in cost(region="eu-west-1").not_included)
    assert not any("us-east-1" in line for line in cost().not_included)
