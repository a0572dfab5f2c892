"""Hands the root folder of a Lustre file system to the user of our images.

A new file system belongs to root, and by default its driver applies no fsGroup to a volume that many nodes mount
(aws-fsx-csi-driver, `fsGroupPolicy: ReadWriteOnceWithFSType`): a training pod, which never runs as root, could read it
and write nothing. One Job per file system, in a namespace of its own.
"""

from typing import Any

# The user and group of our images (`workloads/pod.py`).
IMAGE_USER = 1000


def owner_job_spec(claim: str, image: str) -> dict[str, Any]:
    """The spec of the Job: root, for the one thing that takes root."""
    container = {
        "name": "chown",
        "image": image,
        "command": ["chown", f"{IMAGE_USER}:{IMAGE_USER}", "/volume"],
        "volumeMounts": [{"name": "volume", "mountPath": "/volume"}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "32Mi"}},
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": ["CHOWN"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    pod = {
        "restartPolicy": "OnFailure",
        "automountServiceAccountToken": False,
        "containers": [container],
        "volumes": [{"name": "volume", "persistentVolumeClaim": {"claimName": claim}}],
    }
    return {"backoffLimit": 4, "template": {"spec": pod}}
