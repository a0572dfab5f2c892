"""Storage as a platform's stack file declares it."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from infra.config.model import S3_URL, Model, Name, Positive, Rejected


class EfsVolume(Model):
    """A shared POSIX volume that grows by itself: code, tokenizers, small checkpoints."""

    name: Name
    size_gib: Positive = 200
    """What the claim asks for; EFS itself has no size."""
    storage_class: Name = Field(default="efs-sc", alias="class")
    """The storage class that binds the claim."""


class FsxVolume(Model):
    """An FSx for Lustre file system: data sets and large checkpoints."""

    name: Name
    capacity_gib: Positive
    """1200, or a multiple of 2400."""
    throughput_mb_s_per_tib: Positive | None = None
    """Persistent file systems only: 50, 100, 200 (persistent-1) or 125, 250, 500, 1000 (persistent-2)."""
    deployment: Literal["scratch-2", "persistent-1", "persistent-2"] = "scratch-2"
    s3_link: Annotated[str, Field(pattern=S3_URL)] | None = None
    """A bucket prefix that appears as files."""

    @model_validator(mode="after")
    def _capacity_is_a_step(self) -> "FsxVolume":
        # Lustre user guide: SSD file systems of these three kinds grow from 1200 to 2400, then by 2400.
        if self.capacity_gib != 1200 and self.capacity_gib % 2400:
            above = (self.capacity_gib // 2400 + 1) * 2400
            below = f"{above - 2400} or " if above > 2400 else "1200 or "
            raise Rejected(f"capacity_gib {self.capacity_gib} is no size that FSx makes", f"nearest: {below}{above}")
        return self

    @model_validator(mode="after")
    def _throughput_suits_the_deployment(self) -> "FsxVolume":
        allowed = {"scratch-2": (), "persistent-1": (50, 100, 200), "persistent-2": (125, 250, 500, 1000)}[
            self.deployment
        ]
        given = self.throughput_mb_s_per_tib
        if allowed and given not in allowed:
            raise Rejected(
                f"throughput_mb_s_per_tib is {given or 'missing'} on a {self.deployment} file system",
                f"allowed: {', '.join(map(str, allowed))}",
            )
        if not allowed and given:
            raise Rejected(
                f"throughput_mb_s_per_tib is {given}, but a scratch-2 file system always has 200",
                "drop the key, or choose a persistent deployment",
            )
        return self


class Bucket(Model):
    """An S3 bucket; its real name gets the account and region in front."""

    name: Name
    purpose: Literal["checkpoints", "datasets"]


class Storage(Model):
    efs: list[EfsVolume] = []
    fsx: list[FsxVolume] = []
    buckets: list[Bucket] = []

    @property
    def names(self) -> list[str]:
        """What experiments can mount; a bucket is reached by its address."""
        return [entry.name for entries in (self.efs, self.fsx) for entry in entries]
