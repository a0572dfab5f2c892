"""Which image a pod runs: the digest that was built last, as images.lock.json records it."""

import json
from functools import cache

from workloads.programs import PROJECT
from workloads.resolve import Run

LOCK = PROJECT / "images.lock.json"


@cache
def _locked() -> dict[str, dict[str, str]]:
    return json.loads(LOCK.read_text())["images"] if LOCK.exists() else {}


def is_reference(image: str) -> bool:
    """Whether `image` is a full reference rather than the name of an image that the platform builds."""
    return any(mark in image for mark in "/:@")


def image_reference(run: Run) -> str:
    """The reference that goes into manifests; `:unbuilt` where nothing was ever built and pushed for the platform."""
    image, platform = run.experiment.image, run.experiment.platform
    if is_reference(image):
        return image
    built = _locked().get(image, {}).get(platform)
    if built:
        return built
    registry = run.platform.images.registry
    # An account's own repositories are named for the platform too, so that two platforms can share the account.
    repository = f"trainyard/{platform}/{image}" if registry == "ecr" else f"{registry}/trainyard/{image}"
    return f"{repository}:unbuilt"
