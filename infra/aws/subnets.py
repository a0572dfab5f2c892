"""The addresses of a VPC: one large private and one small public subnet in every zone.

Pods take addresses of the private subnets, so those get nearly all of the range. The range is cut into a power of two
of equal shares, one more than there are zones at least: each zone takes a share, the last share is cut again for the
public subnets. Two zones and three are cut alike, so that a third zone moves nobody's addresses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_network

from infra.config.model import Rejected

# VPC user guide, "VPC CIDR blocks": from /16 to /28.
_LARGEST_VPC_PREFIX = 16
# The VPC CNI hands out addresses in blocks of 16: a /24 is 15 of those after AWS's own five addresses, about as many
# nodes. Anything smaller is no cluster.
_SMALLEST_PRIVATE_PREFIX = 24
# Public subnets hold a NAT gateway and load balancers, never nodes.
_LARGEST_PUBLIC_PREFIX = 24
_FEWEST_SHARES_BITS = 2


@dataclass(frozen=True, kw_only=True)
class ZoneSubnets:
    zone: str
    private: str
    public: str


def plan_subnets(cidr: str, zones: Sequence[str]) -> list[ZoneSubnets]:
    """The subnets of every zone, in the order of `zones`; raises Rejected when the range cannot hold them."""
    vpc = _vpc_range(cidr)
    share_bits = max(_FEWEST_SHARES_BITS, len(zones).bit_length())
    private_prefix = vpc.prefixlen + share_bits
    if private_prefix > _SMALLEST_PRIVATE_PREFIX:
        enough = _SMALLEST_PRIVATE_PREFIX - share_bits
        raise Rejected(
            f"{cidr} leaves a /{private_prefix} for the pods of each of {len(zones)} zones",
            f"use /{enough} or larger, such as {vpc.network_address}/{_LARGEST_VPC_PREFIX}",
        )
    *private, last = vpc.subnets(prefixlen_diff=share_bits)
    public = last.subnets(new_prefix=max(_LARGEST_PUBLIC_PREFIX, last.prefixlen + share_bits))
    return [
        ZoneSubnets(zone=zone, private=str(private_range), public=str(public_range))
        for zone, private_range, public_range in zip(zones, private, public, strict=False)
    ]


def _vpc_range(cidr: str) -> IPv4Network:
    try:
        vpc = ip_network(cidr, strict=False)
    except ValueError:
        raise Rejected(f"{cidr} is no range of addresses", "write one such as 10.0.0.0/16") from None
    assert isinstance(vpc, IPv4Network)  # the key's pattern admits no other
    if str(vpc) != cidr:
        raise Rejected(f"{cidr} does not start at a multiple of its size", f"write {vpc}")
    if vpc.prefixlen < _LARGEST_VPC_PREFIX:
        raise Rejected(f"{cidr} is larger than a VPC can be", f"write {vpc.network_address}/{_LARGEST_VPC_PREFIX}")
    return vpc
