"""images.lock.json: what was built last of each image for each platform, committed beside its sources."""

import json
from typing import Annotated

from pydantic import Field, ValidationError

from infra.config.model import Model
from infra.findings import Finding, InvalidStack, Where
from workloads.programs import PROJECT

LOCK = PROJECT / "images.lock.json"


class LockedImage(Model):
    """One image in a platform's registry."""

    reference: Annotated[str, Field(pattern=r"^\S+@sha256:[0-9a-f]{64}$")]
    source: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
    """The digest of the files that it was built from."""


class ImageLock(Model):
    images: dict[str, dict[str, LockedImage]] = {}
    """By image, then by platform."""


def read_lock() -> ImageLock:
    """Raises InvalidStack where the file is none, as after a merge."""
    if not LOCK.exists():
        return ImageLock()
    try:
        return ImageLock.model_validate_json(LOCK.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or None
        message = f"the lock of images cannot be read: {first['msg']}"
        fix = "restore the last committed file, then build again: `python -m workloads build --platform PLATFORM`"
        where = Where(file=LOCK.name, key=key)
        finding = Finding(rule="TY014", severity="error", where=where, message=message, fix=fix)
        raise InvalidStack([finding], "experiment") from None


def record(image: str, platform: str, built: LockedImage) -> None:
    """Changes that one entry; a reader sees the file before or after, never between."""
    images = read_lock().model_dump()["images"]
    images.setdefault(image, {})[platform] = built.model_dump()
    partial = LOCK.with_name(f"{LOCK.name}.partial")
    partial.write_text(json.dumps({"images": images}, indent=2, sort_keys=True) + "\n")
    partial.replace(LOCK)
