"""An init container that waits for a name, for job kinds whose pods find each other through a headless Service.

torchrun's own time-out then starts when there is somebody to meet.
"""

from workloads.pod import Manifest, container_security

_TIMEOUT_S = 600


def wait_for_master(host: str, trainer: Manifest) -> Manifest:
    """Waits in the trainer's own image, which the node needs in any case."""
    return {
        "name": "wait-for-master",
        "image": trainer["image"],
        "imagePullPolicy": trainer["imagePullPolicy"],
        "command": ["timeout", str(_TIMEOUT_S), "sh", "-c", f"until getent hosts {host}; do sleep 1; done"],
        "securityContext": container_security(),
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}},
    }
