"""`build`: from the checkout to a registry, and into images.lock.json.

What is there already is not built again. A registry on this machine is asked for the tag, which is the digest of the
sources; for every other one the lock tells which sources its image was built from.
"""

import json
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from infra.findings import listed, nearest
from infra.kubernetes.mirrors import mirrored_image
from workloads import build_tools
from workloads.build_tools import BuildFailed, Recipe, ToolName
from workloads.image_lock import LOCK, LockedImage, record
from workloads.image_sources import base_of, dockerfile_of, source_digest
from workloads.images import is_on_this_machine, locked_image
from workloads.repositories import is_pushed, repository_address
from workloads.show import console_for
from workloads.stacks import PlatformStack


@dataclass(frozen=True, kw_only=True)
class BuiltImage:
    """An image of this checkout, in the platform's registry."""

    image: str
    reference: str
    """As manifests name it."""
    source: str
    built: bool
    """False when it was there already."""


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    tool: ToolName | None
    """Default: whichever this machine has."""
    force: bool
    """Build what is there already, from scratch: the base may have been mended meanwhile."""
    verbose: bool
    extra: Sequence[str]
    """For the tool's own build command."""


def build_images(stack: PlatformStack, names: Sequence[str], options: BuildOptions, *, as_json: bool) -> None:
    """Builds the named images, or all of the platform, with a line for each; raises BuildFailed."""
    held = stack.config.images.build
    for name in names:
        if name not in held:
            raise BuildFailed(
                f"platform `{stack.file.stack}` holds no image `{name}`",
                f"`images.build` in {stack.file.file} lists: {listed(held)}.{nearest(name, held)}",
            )
    console = console_for(sys.stderr if as_json else sys.stdout)
    finished: list[BuiltImage] = []
    for name in names or held:
        started = time.monotonic()
        # A tool that is shown writes where the status would stand.
        with nullcontext() if options.verbose else console.status(f"{name}: building"):
            image = _build_one(stack, name, options)
        finished.append(image)
        how = f"built in {time.monotonic() - started:.0f} s" if image.built else "is there already"
        console.print(f"[bold]{name}[/bold] {how}: {image.reference}")
    if any(image.built and "@" in image.reference for image in finished):
        console.print(f"{LOCK.name} has changed: commit it, so that every preview names what was built")
    if as_json:
        print(json.dumps({"images": [asdict(image) for image in finished]}, indent=2))


def _build_one(stack: PlatformStack, image: str, options: BuildOptions) -> BuiltImage:
    platform, images = stack.file.stack, stack.config.images
    source = source_digest(image)
    on_this_machine = is_on_this_machine(images.registry)
    locked = None if on_this_machine else locked_image(image, platform, images)
    if locked and locked.source == source and not options.force:
        return BuiltImage(image=image, reference=locked.reference, source=source, built=False)

    repository = repository_address(image, platform, images)
    # Elsewhere with the time: ECR's tags are immutable, and the same sources may be built again on a newer base.
    tag = f"{repository}:{source}" if on_this_machine else f"{repository}:{source}-{datetime.now(UTC):%Y%m%d%H%M%S}"
    if on_this_machine and not options.force and is_pushed(tag):
        return BuiltImage(image=image, reference=tag, source=source, built=False)

    tool = build_tools.find_tool(options.tool)
    recipe = Recipe(
        tag=tag,
        dockerfile=dockerfile_of(image),
        base=mirrored_image(base_of(image), stack.config.mirrors),
        source=source,
        from_scratch=options.force,
        options=options.extra,
    )
    build_tools.build(tool, recipe, verbose=options.verbose)
    digest = build_tools.push(tool, tag, verbose=options.verbose)
    if on_this_machine:
        return BuiltImage(image=image, reference=tag, source=source, built=True)
    reference = f"{repository}@{digest}"
    record(image, platform, LockedImage(reference=reference, source=source))
    return BuiltImage(image=image, reference=reference, source=source, built=True)
