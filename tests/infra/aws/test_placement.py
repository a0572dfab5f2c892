"""Which zones nodes stand in."""

from typing import Any

from infra.aws.placement import lustre_zone, needs_placement_group, zones_of
from infra.config.nodes import NodeGroup
from infra.config.platform import EksPlatform, Network

NETWORK = Network(zones=["us-east-1a", "us-east-1b", "us-east-1c"])
RESERVED = [{"block": "cr-0123456789abcdef0"}, {"reservation": "cr-0123456789abcdef0"}]


def group(instance_type: str = "p4d.24xlarge", **more: Any) -> NodeGroup:
    return NodeGroup.model_validate({"name": "group", "instance_type": instance_type, "max": 2, **more})


def test_ordinary_groups_spread_over_every_zone() -> None:
    assert zones_of(group("m5.xlarge"), NETWORK) == NETWORK.zones


def test_efa_stays_in_one_zone_even_when_none_is_named() -> None:
    assert zones_of(group(efa=True), NETWORK) == ["us-east-1a"]
    assert zones_of(group(efa=True, zone="us-east-1c"), NETWORK) == ["us-east-1c"]


def test_reserved_capacity_gets_no_placement_group_of_ours() -> None:
    assert needs_placement_group(group(efa=True))
    assert needs_placement_group(group(efa=True, capacity="spot"))
    assert not any(needs_placement_group(group(efa=True, capacity=capacity)) for capacity in RESERVED)
    assert not needs_placement_group(group("m5.xlarge"))


def test_lustre_stands_beside_the_biggest_nodes_that_are_tied_to_a_zone() -> None:
    def platform(*groups: dict[str, Any]) -> EksPlatform:
        body = {"target": "eks", "network": NETWORK.model_dump(), "teams": [{"name": "a", "namespace": "a"}]}
        return EksPlatform.model_validate({**body, "node_groups": list(groups)})

    cpu = {"name": "cpu", "instance_type": "m5.xlarge", "max": 9, "zone": "us-east-1c"}
    gpu = {"name": "gpu", "instance_type": "p4d.24xlarge", "max": 2, "efa": True, "zone": "us-east-1b"}
    assert lustre_zone(platform(cpu, gpu)) == "us-east-1b"
    assert lustre_zone(platform({"name": "cpu", "instance_type": "m5.xlarge", "max": 9})) == "us-east-1a"
