"""Which image a pod runs: the digest that was built last, as images.lock.json records it."""

import json
from functools import cache

from infra.config.platform import PlatformConfig
from workloads.programs import PROJECT

LOCK = PROJECT / "images.lock.json"


@cache
def _locked() -> dict[str, dict[str, str]]:
    return json.loads(LOCK.read_text())["images"] if LOCK.exists() else {}


def is_reference(image: str) -> bool:
    """Whether `image` is a full reference rather than the name of an image that the platform builds."""
    return any(mark in image for mark in "/:@")


def image_reference(image: str, platform: PlatformConfig) -> str:
    """The reference that goes into manifests; `:unbuilt` where nothing was ever built and pushed for the registry."""
    if is_reference(image):
        return image
    registry = platform.images.registry
    built = _locked().get(image, {}).get(registry)
    if built:
        return built
    repository = f"trainyard/{image}" if registry == "ecr" else f"{registry}/trainyard/{image}"
    return f"{repository}:unbuilt"
