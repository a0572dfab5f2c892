"""Which zones the machines of a platform stand in."""

from infra.config.nodes import NodeGroup
from infra.config.platform import EksPlatform, Network
from infra.instances import INSTANCE_TYPES


def zones_of(group: NodeGroup, network: Network) -> list[str]:
    """The zones of a group's nodes; EFA does not leave its zone, and reserved capacity is in one."""
    if group.zone is not None:
        return [group.zone]
    return network.zones[:1] if group.efa or is_reserved(group) else network.zones


def is_reserved(group: NodeGroup) -> bool:
    """Whether the group's nodes come from a capacity block or a capacity reservation."""
    return not isinstance(group.capacity, str)


def needs_placement_group(group: NodeGroup) -> bool:
    """EFA wants its nodes close together.

    Not where capacity is reserved: those machines stand where they stand, a block's side by side already, and with a
    placement group of ours on top EC2 finds only some of them (eksctl-io/eksctl#7949, terraform-aws-eks#3730).
    """
    return group.efa and not is_reserved(group)


def lustre_zone(config: EksPlatform) -> str:
    """A Lustre file system is in one zone, and reading across zones costs latency and money: the zone of the group that
    is tied to one and can train the largest models."""
    tied = [group for group in config.node_groups if len(zones_of(group, config.network)) == 1]
    return zones_of(max(tied, key=_device_memory_gib), config.network)[0] if tied else config.network.zones[0]


def _device_memory_gib(group: NodeGroup) -> float:
    row = INSTANCE_TYPES[group.instance_type]
    return row.accelerator.memory_gib * row.num_accelerators * group.max if row.accelerator else 0.0
