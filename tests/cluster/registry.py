"""The registry on this machine: everything that pods run comes from it.

It serves one folder twice: to the host, which pushes, and inside the node, which pulls. `localhost` is then the same
registry to both, and needs no certificate.
"""

import contextlib
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.cluster.paths import CACHE

REGISTRY_PORT = 5000
REGISTRY = f"localhost:{REGISTRY_PORT}"
PAUSE_IMAGE = f"{REGISTRY}/trainyard/pause:1"
"""What holds the namespaces of a pod."""

_PID = CACHE / "registry.pid"


def mirrored(image: str) -> str:
    """The image's name here, as `mirrors.images` of Pulumi.local.yaml maps it."""
    return f"{REGISTRY}/{image}"


def registry_command(port: int) -> list[str]:
    config = CACHE / "registry.yaml"
    config.write_text(_CONFIG.format(folder=CACHE / "registry", port=port))
    return ["docker-registry", "serve", str(config)]


def start_registry() -> None:
    """Starts the host's, unless it answers."""
    if _answers():
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "registry.log").open("ab") as log:
        process = subprocess.Popen(
            registry_command(REGISTRY_PORT), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    _PID.write_text(str(process.pid))
    for _ in range(100):
        if _answers():
            return
        time.sleep(0.1)
    raise RuntimeError(f"the registry does not answer on {REGISTRY}; see {CACHE / 'registry.log'}")


def stop_registry() -> None:
    if _PID.exists():
        pid = int(_PID.read_text())
        with contextlib.suppress(OSError):  # it has ended
            if Path(f"/proc/{pid}/exe").readlink().name == "docker-registry":
                os.kill(pid, signal.SIGTERM)
        _PID.unlink()


def has_image(reference: str) -> bool:
    """Whether the registry has `localhost:5000/name:tag`."""
    name, _, tag = reference.removeprefix(f"{REGISTRY}/").rpartition(":")
    accepted = ["application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"]
    request = urllib.request.Request(
        f"http://{REGISTRY}/v2/{name}/manifests/{tag}", method="HEAD", headers={"Accept": ", ".join(accepted)}
    )
    try:
        with urllib.request.urlopen(request, timeout=10):
            return True
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return False
        raise


def _answers() -> bool:
    try:
        with urllib.request.urlopen(f"http://{REGISTRY}/v2/", timeout=2):
            return True
    except OSError:
        return False


_CONFIG = """\
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {folder}}}, delete: {{enabled: true}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""
