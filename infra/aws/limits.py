"""What AWS refuses and a stack file alone can tell."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from infra.aws.placement import is_reserved
from infra.aws.subnets import plan_subnets
from infra.config.model import Rejected
from infra.config.platform import EksPlatform
from infra.config.stackfile import KeyPath
from infra.instances import INSTANCE_TYPES
from infra.nodes import accelerator_taints

_MAX_BUCKET_NAME = 63
_ACCOUNT_ID_DIGITS = 12
_PRINCIPAL = re.compile(r"^arn:[\w-]+:iam::\d{12}:(role|user)/\S+$")


class Impossible(NamedTuple):
    """A value that is well-formed by itself and that AWS would still refuse."""

    keys: KeyPath
    message: str
    fix: str


def bucket_name(*, account_id: str, region: str, stack: str, name: str) -> str:
    """The real name of a bucket: unique in the world, and telling whose it is."""
    return f"{account_id}-{region}-{stack}-{name}"


def impossible(config: EksPlatform, *, stack: str, region: str) -> Iterator[Impossible]:
    """Everything that would fail at AWS, minutes into `pulumi up`."""
    yield from _network(config, region)
    yield from _node_groups(config)
    for index, principal in enumerate(config.cluster.admins):
        if not _PRINCIPAL.match(principal):
            yield Impossible(
                ("cluster", "admins", index),
                f'"{principal}" is no ARN of an IAM role or user',
                "write one such as arn:aws:iam::123456789012:role/platform-admin",
            )
    for index, volume in enumerate(config.storage.efs):
        if volume.storage_class in [other.storage_class for other in config.storage.efs[:index]]:
            yield Impossible(
                ("storage", "efs", index, "class"),
                f"`{volume.storage_class}` is the storage class of another file system already",
                f"add a class of its own, such as `class: {volume.name}`",
            )
    for index, bucket in enumerate(config.storage.buckets):
        name = bucket_name(account_id="0" * _ACCOUNT_ID_DIGITS, region=region, stack=stack, name=bucket.name)
        if len(name) > _MAX_BUCKET_NAME:
            excess = len(name) - _MAX_BUCKET_NAME
            yield Impossible(
                ("storage", "buckets", index, "name"),
                f"the bucket's real name, {name}, has {len(name)} characters; S3 takes {_MAX_BUCKET_NAME}",
                f"shorten it by {excess}",
            )


def _network(config: EksPlatform, region: str) -> Iterator[Impossible]:
    network = config.network
    try:
        plan_subnets(network.cidr, network.zones)
    except Rejected as rejected:
        yield Impossible(("network", "cidr"), str(rejected), rejected.fix)
    for index, zone in enumerate(network.zones):
        keys = ("network", "zones", index)
        if zone in network.zones[:index]:
            yield Impossible(keys, f'"{zone}" stands there twice', "name another zone")
        elif not re.fullmatch(rf"{re.escape(region)}[a-z]", zone):
            yield Impossible(keys, f'"{zone}" is no zone of {region}', f"write one such as {region}a")


def _node_groups(config: EksPlatform) -> Iterator[Impossible]:
    zones = ", ".join(config.network.zones)
    for index, group in enumerate(config.node_groups):
        keys = ("node_groups", index)
        if group.zone is not None and group.zone not in config.network.zones:
            yield Impossible((*keys, "zone"), f'"{group.zone}" is no zone of the network', f"allowed: {zones}")
        if group.zone is None and is_reserved(group):
            message = "reserved capacity is in one zone, and the group does not say in which"
            yield Impossible((*keys, "capacity"), message, f"add `zone:`, one of {zones}")
        if group.max == 0:
            yield Impossible((*keys, "max"), "EKS takes no node group with a maximum of 0", "raise `max`, or drop it")
    if not any(
        group.min > 0 and not group.taints and not accelerator_taints(INSTANCE_TYPES[group.instance_type])
        for group in config.node_groups
    ):
        yield Impossible(
            ("node_groups",),
            "no group without a taint has a node from the start, so that cluster DNS and the operators cannot run",
            "add a group such as {name: system, instance_type: m5.xlarge, min: 2, max: 4}",
        )
