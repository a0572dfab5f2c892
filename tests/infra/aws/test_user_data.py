"""What nodes are told at their first boot."""

import base64
import email
import json
from typing import Any

from infra.aws.user_data import LOCAL_NVME_FAMILIES, node_config, user_data
from infra.config.nodes import NodeGroup
from infra.instances import INSTANCE_TYPES


def group(instance_type: str, **more: Any) -> NodeGroup:
    return NodeGroup(name="group", instance_type=instance_type, max=1, **more)


def test_nodeadm_finds_the_node_config_in_the_mime_document() -> None:
    given = group("p4d.24xlarge", efa=True)
    encoded = user_data(given)
    assert encoded is not None
    document = email.message_from_bytes(base64.b64decode(encoded))
    assert document.is_multipart()
    (part,) = document.get_payload()
    assert part.get_content_type() == "application/node.eks.aws"
    assert json.loads(part.get_payload()) == node_config(given)


def test_local_disks_are_joined_where_there_are_any() -> None:
    config = node_config(group("g5.12xlarge"))
    assert config is not None
    assert config["spec"] == {"instance": {"localStorage": {"strategy": "RAID0"}}}


def test_a_node_that_needs_nothing_special_is_told_nothing() -> None:
    assert user_data(group("m5.xlarge")) is None


def test_efa_nodes_let_containers_lock_memory_and_open_as_many_files_as_others() -> None:
    config = node_config(group("p5.48xlarge", efa=True))
    assert config is not None
    limits = {limit["type"]: limit for limit in config["spec"]["containerd"]["baseRuntimeSpec"]["process"]["rlimits"]}
    # nodeadm reads numbers as 64-bit floats.
    assert limits["RLIMIT_MEMLOCK"]["hard"] == int(float(limits["RLIMIT_MEMLOCK"]["hard"])) > 2**50
    assert limits["RLIMIT_NOFILE"] == {"type": "RLIMIT_NOFILE", "soft": 65_536, "hard": 1_048_576}


def test_every_family_with_local_disks_is_in_the_instance_table() -> None:
    assert {row.family for row in INSTANCE_TYPES.values()} >= LOCAL_NVME_FAMILIES
