"""Secrets of a stack: a stack file names them, and only `pulumi config set --secret` holds their values."""

import base64
import json

import pulumi

from infra.config.model import SecretName
from infra.config.platform import PullSecret

# Docker's own name for its registry in a credentials file; `docker.io` there is never looked up.
_DOCKER_HUB = "https://index.docker.io/v1/"


def secret_value(name: SecretName) -> pulumi.Output[str]:
    """The value of `trainyard:<name>`; without one, Pulumi says which command sets it."""
    return pulumi.Config("trainyard").require_secret(name.secret)


def docker_config(registry: str, username: str, password: str) -> str:
    """The text of a `.dockerconfigjson` for one registry."""
    host = _DOCKER_HUB if registry == "docker.io" else registry
    token = base64.b64encode(f"{username}:{password}".encode()).decode()
    return json.dumps({"auths": {host: {"username": username, "password": password, "auth": token}}})


def pull_secret_data(pull_secret: PullSecret) -> dict[str, pulumi.Output[str]]:
    """What the image pull secret of a namespace holds; secret as its password is."""
    return {
        ".dockerconfigjson": secret_value(pull_secret.password).apply(
            lambda password: docker_config(pull_secret.registry, pull_secret.username, password)
        )
    }
