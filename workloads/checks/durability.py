"""TY5xx: whether what a run saves outlives its pods."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from workloads.checks.registry import Problem, rule
from workloads.resolve import Run


@rule("TY501")
def checkpoints_are_on_a_volume(run: Run) -> Iterator[Problem]:
    """The checkpoint path is on no mounted volume.

    A container's root file system cannot be written, and its /tmp goes with the pod: every restart would begin at 0.
    """
    checkpoint = run.experiment.checkpoint
    if checkpoint is None or checkpoint.path.startswith("s3://"):
        return
    mounts = [volume.mount for volume in run.experiment.volumes]
    if not any(PurePosixPath(checkpoint.path).is_relative_to(mount) for mount in mounts):
        below = f"use a path below {' or '.join(mounts)}" if mounts else "mount a volume of the platform: `volumes`"
        yield Problem(("checkpoint", "path"), f"{checkpoint.path} is on no volume of the pods", below)


@rule("TY502")
def mounts_are_apart(run: Run) -> Iterator[Problem]:
    """Two volumes at the same place, or one at a place that the pod needs itself."""
    taken = {"/dev/shm": "shared memory", "/tmp": "scratch space", "/workspace": "the program"}
    for index, volume in enumerate(run.experiment.volumes):
        mount = volume.mount.rstrip("/") or "/"
        if mount == "/" or mount in taken:
            holder = taken.get(mount, "the image")
            yield Problem(("volumes", index, "mount"), f"{mount} holds {holder}", "mount it elsewhere, such as /shared")
        taken[mount] = f"the volume `{volume.name}`"
