"""What a node is told at its first boot, in nodeadm's NodeConfig (awslabs/amazon-eks-ami, nodeadm/doc/api.md).

EKS adds a NodeConfig of its own with the cluster's address; nodeadm merges the two, which is why this one must come as
a part of a MIME document.
"""

import base64
import json
from typing import Any

from infra.config.nodes import NodeGroup
from infra.instances import INSTANCE_TYPES

# Families of the instance table with NVMe disks of their own (EC2 instance type pages, "instance store").
LOCAL_NVME_FAMILIES = frozenset(
    {"g4dn", "g5", "g6", "g6e", "p3dn", "p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "trn1", "trn1n", "trn2"}
)

# Libfabric registers its buffers as locked memory. Containers inherit systemd's 8 MiB, and the capability that lifts
# the limit, IPC_LOCK, is refused in namespaces with the `restricted` Pod Security Standard; Bottlerocket raises the
# limit by itself on nodes with EFA (bottlerocket-core-kit#141). nodeadm passes numbers through JSON, so this is the
# largest that survives it, 8 PiB, and not RLIM_INFINITY.
_LOCKED_MEMORY = {"type": "RLIMIT_MEMLOCK", "soft": 2**53, "hard": 2**53}
# The image's own default, repeated because a list replaces the list that it is merged into.
_OPEN_FILES = {"type": "RLIMIT_NOFILE", "soft": 65_536, "hard": 1_048_576}

_BOUNDARY = "//"


def node_config(group: NodeGroup) -> dict[str, Any] | None:
    """The NodeConfig of a group; None where EKS's own says it all."""
    spec: dict[str, Any] = {}
    if INSTANCE_TYPES[group.instance_type].family in LOCAL_NVME_FAMILIES:
        # containerd, kubelet and emptyDir volumes move to the local disks: image layers and /tmp at NVMe speed.
        spec["instance"] = {"localStorage": {"strategy": "RAID0"}}
    if group.efa:
        spec["containerd"] = {"baseRuntimeSpec": {"process": {"rlimits": [_OPEN_FILES, _LOCKED_MEMORY]}}}
    return {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec} if spec else None


def user_data(group: NodeGroup) -> str | None:
    """The NodeConfig as a launch template takes it."""
    config = node_config(group)
    if config is None:
        return None
    lines = [
        "MIME-Version: 1.0",
        f'Content-Type: multipart/mixed; boundary="{_BOUNDARY}"',
        "",
        f"--{_BOUNDARY}",
        "Content-Type: application/node.eks.aws",
        "",
        json.dumps(config, indent=2),
        f"--{_BOUNDARY}--",
        "",
    ]
    return base64.b64encode("\n".join(lines).encode()).decode()
