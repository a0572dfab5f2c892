"""TY8xx: what a pod may do, and what it runs."""

from collections.abc import Iterator

from workloads.checks.registry import Problem, rule
from workloads.images import image_reference
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
    reference = image_reference(run)
    if "@sha256:" not in reference:
        yield Problem(("image",), f"{reference} is not pinned by digest", "use a reference that ends in @sha256:…")
