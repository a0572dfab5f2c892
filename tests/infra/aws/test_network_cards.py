"""The layout of EFA interfaces, for every type that has any."""

import pytest

from infra.aws.network_cards import efa_interfaces
from infra.instances import INSTANCE_TYPES, InstanceType

WITH_EFA = [row for row in INSTANCE_TYPES.values() if row.num_efa]


@pytest.mark.parametrize("row", WITH_EFA, ids=lambda row: row.name)
def test_every_card_carries_exactly_one_efa_interface(row: InstanceType) -> None:
    efa_cards = [interface.card for interface in efa_interfaces(row.num_efa) if interface.kind == "efa-only"]
    assert efa_cards == list(range(row.num_efa))


@pytest.mark.parametrize("row", WITH_EFA, ids=lambda row: row.name)
def test_the_primary_interface_is_the_only_one_that_takes_addresses(row: InstanceType) -> None:
    with_addresses = [interface for interface in efa_interfaces(row.num_efa) if interface.kind == "interface"]
    assert [(interface.card, interface.device) for interface in with_addresses] == [(0, 0)]


@pytest.mark.parametrize("row", WITH_EFA, ids=lambda row: row.name)
def test_no_two_interfaces_share_a_place(row: InstanceType) -> None:
    places = [(interface.card, interface.device) for interface in efa_interfaces(row.num_efa)]
    assert len(set(places)) == len(places)
