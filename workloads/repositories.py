"""Where a platform's images are pushed to, and whether one is there already."""

import json
import subprocess
import urllib.error
import urllib.request
from functools import cache

from infra.config.platform import Images
from workloads.build_tools import BuildFailed
from workloads.images import repository_name
from workloads.programs import PROJECT

_ANSWER_TIMEOUT_S = 10
_MANIFESTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)


def repository_address(image: str, platform: str, images: Images) -> str:
    """The repository with its host; that of an AWS account's own registry only the deployed platform knows."""
    if images.registry != "ecr":
        return repository_name(image, platform, images)
    deployed = _deployed_repositories(platform)
    if image not in deployed:
        raise BuildFailed(
            f"the deployed platform `{platform}` has no repository for `{image}`", f"`pulumi up -s {platform}`"
        )
    return deployed[image]


def is_pushed(tag: str) -> bool:
    """Whether a registry on this machine has `host/name:tag`."""
    host, _, path = tag.partition("/")
    name, _, version = path.rpartition(":")
    request = urllib.request.Request(
        f"http://{host}/v2/{name}/manifests/{version}", method="HEAD", headers={"Accept": ", ".join(_MANIFESTS)}
    )
    try:
        # Without the proxy that $http_proxy may name: the registry is on this machine.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=_ANSWER_TIMEOUT_S):
            return True
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return False
        raise BuildFailed(f"the registry {host} answers {error.code} {error.reason}", "see its log") from None
    except OSError as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise BuildFailed(
            f"no registry answers at {host}: {reason}",
            "start one, such as `docker run --detach --publish 5000:5000 registry:2`",
        ) from None


@cache
def _deployed_repositories(platform: str) -> dict[str, str]:
    command = ["pulumi", "stack", "output", "--stack", platform, "--json"]
    try:
        shown = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    except FileNotFoundError:
        raise BuildFailed(
            f"pulumi is not on PATH, and only it knows the registry of platform `{platform}`",
            "install the Pulumi CLI: https://www.pulumi.com/docs/install/",
        ) from None
    outputs: dict[str, dict[str, str]] = json.loads(shown.stdout) if shown.returncode == 0 else {}
    if "repositories" not in outputs:
        raise BuildFailed(
            f"platform `{platform}` is not deployed, so that it has no registry yet",
            f"first `pulumi up -s {platform}`",
            output=shown.stderr,
        )
    return outputs["repositories"]
