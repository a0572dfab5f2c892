"""What a platform costs per hour, by the price list of one region and one day.

Instances come from the instance table with its own date. The other prices are AWS's public list for us-east-1, written
down once and not verified since; they stand here, and nowhere else, to be corrected.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from infra.config.nodes import CapacityBlock, CapacityReservation, NodeGroup, NodePool
from infra.config.platform import EksPlatform, PlatformConfig
from infra.config.storage import FsxVolume
from infra.instances import INSTANCE_TYPES, PRICED_ON, PRICED_REGION

HOURS_PER_MONTH = 730

CONTROL_PLANE_USD_PER_HOUR = 0.10  # aws.amazon.com/eks/pricing, standard support
NAT_GATEWAY_USD_PER_HOUR = 0.045  # aws.amazon.com/vpc/pricing
INTERFACE_ENDPOINT_USD_PER_HOUR = 0.01  # aws.amazon.com/privatelink/pricing, for each zone
GP3_USD_PER_GB_MONTH = 0.08  # aws.amazon.com/ebs/pricing
EFS_USD_PER_GB_MONTH = 0.30  # aws.amazon.com/efs/pricing, Standard storage
# aws.amazon.com/fsx/lustre/pricing, SSD: by deployment and MB/s per TiB, in dollars per GB-month.
FSX_USD_PER_GB_MONTH: dict[tuple[str, int | None], float] = {
    ("scratch-2", None): 0.140,
    ("persistent-1", 50): 0.140,
    ("persistent-1", 100): 0.190,
    ("persistent-1", 200): 0.290,
    ("persistent-2", 125): 0.145,
    ("persistent-2", 250): 0.210,
    ("persistent-2", 500): 0.340,
    ("persistent-2", 1000): 0.600,
}
NUM_INTERFACE_ENDPOINTS = 3  # infra/aws/network.py: ECR's two and STS

_NEVER_INCLUDED = (
    "network traffic, NAT by the gigabyte, requests, logs and keys",
    "what buckets and image repositories hold",
    "EFS throughput, and files beyond each volume's size_gib",
    "the surcharge for a Kubernetes version in extended support",
)


@dataclass(frozen=True, kw_only=True)
class CostItem:
    """One line of the bill; None where its price is not known."""

    name: str
    usd_per_hour_at_minimum: float | None
    usd_per_hour_at_maximum: float | None
    note: str | None = None
    """What the figures leave out, or why there is none."""


@dataclass(frozen=True, kw_only=True)
class PlatformCost:
    """The bill with every group at its `min`, and with every group and pool at its `max`."""

    items: tuple[CostItem, ...]
    not_included: tuple[str, ...]
    priced_at: str = f"{PRICED_REGION} on demand, {PRICED_ON}"

    @property
    def usd_per_hour_at_minimum(self) -> float | None:
        return _total([item.usd_per_hour_at_minimum for item in self.items])

    @property
    def usd_per_hour_at_maximum(self) -> float | None:
        return _total([item.usd_per_hour_at_maximum for item in self.items])

    @property
    def unknown(self) -> list[str]:
        """Why a sum is None."""
        return [f"{item.name}: {item.note}" for item in self.items if item.usd_per_hour_at_maximum is None]


def platform_cost(config: PlatformConfig, region: str | None) -> PlatformCost:
    """What the platform itself adds to the bill: on a cluster that is there already, nothing."""
    if not isinstance(config, EksPlatform):
        return PlatformCost(items=(), not_included=("the cluster and its nodes, which are there already",))
    items = (
        *_network_items(config),
        *_storage_items(config),
        *(_group_item(group) for group in config.node_groups),
        *(_pool_item(pool) for pool in config.node_pools),
    )
    not_included = [f"{item.name}: {item.note}" for item in items if item.note and item.usd_per_hour_at_maximum]
    if "spot" in [*(group.capacity for group in config.node_groups), *(pool.capacity for pool in config.node_pools)]:
        not_included.append("the discount of spot nodes: they are counted at the price on demand")
    if region != PRICED_REGION:
        not_included.append(f"what {region} costs more or less than {PRICED_REGION}")
    return PlatformCost(items=items, not_included=(*not_included, *_NEVER_INCLUDED))


def _network_items(config: EksPlatform) -> Iterator[CostItem]:
    num_zones = len(config.network.zones)
    num_gateways = num_zones if config.network.nat == "per-zone" else 1
    yield _constant("control plane", CONTROL_PLANE_USD_PER_HOUR)
    yield _constant(f"NAT gateways, {num_gateways}", num_gateways * NAT_GATEWAY_USD_PER_HOUR)
    yield _constant(
        f"interface endpoints, {NUM_INTERFACE_ENDPOINTS} in each of {num_zones} zones",
        NUM_INTERFACE_ENDPOINTS * num_zones * INTERFACE_ENDPOINT_USD_PER_HOUR,
    )


def _storage_items(config: EksPlatform) -> Iterator[CostItem]:
    for efs in config.storage.efs:
        yield _constant(f"EFS {efs.name}, {efs.size_gib} GiB full", _per_hour(efs.size_gib * EFS_USD_PER_GB_MONTH))
    for fsx in config.storage.fsx:
        yield _constant(f"FSx {fsx.name}, {fsx.capacity_gib} GiB", _per_hour(fsx.capacity_gib * _fsx_price(fsx)))


def _fsx_price(volume: FsxVolume) -> float:
    return FSX_USD_PER_GB_MONTH[volume.deployment, volume.throughput_mb_s_per_tib]


def _group_item(group: NodeGroup) -> CostItem:
    disk = _per_hour(group.disk_gib * GP3_USD_PER_GB_MONTH)
    instance = INSTANCE_TYPES[group.instance_type].usd_per_hour
    note = f"the price of {group.instance_type} is not known" if instance is None else None
    if isinstance(group.capacity, CapacityBlock):
        instance, note = 0.0, "its capacity block is paid in advance"
    elif isinstance(group.capacity, CapacityReservation):
        note = note or "its reservation costs the same while nothing runs in it"
    return CostItem(
        name=f"node group {group.name}, {group.min} to {group.max} × {group.instance_type}",
        usd_per_hour_at_minimum=_nodes(group.min, instance, disk),
        usd_per_hour_at_maximum=_nodes(group.max, instance, disk),
        note=note,
    )


def _pool_item(pool: NodePool) -> CostItem:
    """At most: Karpenter starts the dearest type when the pods leave it no other."""
    prices = {name: INSTANCE_TYPES[name].usd_per_hour for name in pool.instance_types}
    known = [price for price in prices.values() if price is not None]
    note = None
    if pool.limits.nodes is None:
        note = "without `limits.nodes` there is no most"
    elif len(known) < len(prices):
        note = f"the price of {next(name for name, price in prices.items() if price is None)} is not known"
    return CostItem(
        name=f"node pool {pool.name}, up to {pool.limits.nodes or 'any number of'} nodes",
        usd_per_hour_at_minimum=0.0,
        usd_per_hour_at_maximum=None if note or pool.limits.nodes is None else pool.limits.nodes * max(known),
        note=note,
    )


def _nodes(count: int, instance: float | None, disk: float) -> float | None:
    """No nodes cost nothing, whatever one would cost."""
    if count == 0:
        return 0.0
    return None if instance is None else count * (instance + disk)


def _constant(name: str, usd_per_hour: float) -> CostItem:
    return CostItem(name=name, usd_per_hour_at_minimum=usd_per_hour, usd_per_hour_at_maximum=usd_per_hour)


def _per_hour(usd_per_month: float) -> float:
    return usd_per_month / HOURS_PER_MONTH


def _total(amounts: list[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None
