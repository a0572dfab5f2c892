"""Which image a pod runs, as a reference that names what was built.

A registry that others share: the digest that images.lock.json records. A registry on this machine is nobody else's, so
there the tag is the digest of the sources: two equal checkouts name the same image, and an edit is another run.
"""

from infra.config.platform import Images
from workloads.image_lock import LockedImage, read_lock
from workloads.image_sources import source_digest
from workloads.resolve import Run


def is_reference(image: str) -> bool:
    """Whether `image` is a full reference rather than the name of an image that the platform builds."""
    return any(mark in image for mark in "/:@")


def is_on_this_machine(registry: str) -> bool:
    """Whether a registry, or the registry of a reference, is `localhost` or 127.x.x.x."""
    host = registry.partition("/")[0].partition(":")[0]
    return host == "localhost" or host.startswith("127.")


def repository_name(image: str, platform: str, images: Images) -> str:
    """Where the platform keeps an image; without the host where AWS chooses it."""
    # An account's own repositories are named for the platform too, so that two platforms can share the account.
    return f"trainyard/{platform}/{image}" if images.registry == "ecr" else f"{images.registry}/trainyard/{image}"


def locked_image(image: str, platform: str, images: Images) -> LockedImage | None:
    """What was built last; an entry in a registry that the platform has left counts for nothing."""
    locked = read_lock().images.get(image, {}).get(platform)
    repository = repository_name(image, platform, images)
    return locked if locked and f"/{locked.reference.partition('@')[0]}".endswith(f"/{repository}") else None


def is_locked_image(run: Run) -> bool:
    """Whether the lock says what the run's image is: not for a full reference, nor for a registry on this machine."""
    return not is_reference(run.experiment.image) and not is_on_this_machine(run.platform.images.registry)


def is_built(run: Run) -> bool:
    """Whether there is an image to pull, as far as files tell."""
    experiment, images = run.experiment, run.platform.images
    return not is_locked_image(run) or locked_image(experiment.image, experiment.platform, images) is not None


def image_reference(run: Run) -> str:
    """The reference that goes into manifests; `:unbuilt` where nothing was ever built and pushed for the platform."""
    image, platform, images = run.experiment.image, run.experiment.platform, run.platform.images
    if is_reference(image):
        return image
    repository = repository_name(image, platform, images)
    if is_on_this_machine(images.registry):
        return f"{repository}:{source_digest(image)}"
    locked = locked_image(image, platform, images)
    return locked.reference if locked else f"{repository}:unbuilt"
