"""TY8xx: what a pod may do, and what it runs."""

from collections.abc import Iterator

from workloads.checks.registry import Problem, rule
from workloads.image_sources import source_digest
from workloads.images import is_built, is_locked_image, is_reference, locked_image
from workloads.resolve import Run


@rule("TY801")
def pods_have_their_own_network(run: Run) -> Iterator[Problem]:
    """The node's network in a namespace that refuses it.

    Teams' namespaces enforce the `restricted` Pod Security Standard: the job is accepted, its pods never are. EFA does
    not need the host's network: the device plugin hands its interfaces to the pod.
    """
    if run.experiment.host_network:
        yield Problem(
            ("host_network",),
            f"the namespace `{run.team.namespace}` enforces the `restricted` Pod Security Standard, which refuses it",
            "drop `host_network`: EFA works without it",
        )


@rule("TY802", "info")
def image_is_pinned(run: Run) -> Iterator[Problem]:
    """The image has no digest, so that two pods, or a restart next week, may run different code."""
    image = run.experiment.image
    if is_reference(image) and "@sha256:" not in image:
        yield Problem(("image",), f"{image} is not pinned by digest", "use a reference that ends in @sha256:…")


@rule("TY803", "info")
def image_is_built(run: Run) -> Iterator[Problem]:
    """The image was never built for the platform, so that no node could pull it: `pulumi up` refuses to try."""
    image, platform = run.experiment.image, run.experiment.platform
    if not is_built(run):
        yield Problem(("image",), f"`{image}` was never built for platform `{platform}`", _build(image, platform))


@rule("TY804", "warning")
def image_is_current(run: Run) -> Iterator[Problem]:
    """The image was built from other files than those of this checkout.

    The pods would run the code of then: an edit of training/ reaches them with the next build. On a registry of this
    machine there is nothing to compare, since the reference itself holds the digest of the files.
    """
    image, platform = run.experiment.image, run.experiment.platform
    locked = locked_image(image, platform, run.platform.images) if is_locked_image(run) else None
    if locked and locked.source != source_digest(image):
        message = f"`{image}` was built from sources {locked.source}, the checkout has {source_digest(image)}"
        yield Problem(("image",), message, _build(image, platform))


def _build(image: str, platform: str) -> str:
    return f"`python -m workloads build {image} --platform {platform}`, and commit images.lock.json"
