"""What goes into an image, as twelve hex digits: the same in every equal checkout, with or without git.

The list is the Dockerfile itself and what it copies, less what .dockerignore keeps out of every build, so that the
digest and the build's context cannot drift apart.
"""

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from workloads.programs import LIBRARIES, PROJECT, TRAINING

IMAGES = PROJECT / "training" / "images"
_IGNORED = PROJECT / ".dockerignore"
_DIGITS = 12
_BASE = re.compile(r"^ARG BASE=(\S+)$", re.MULTILINE)


def image_names() -> list[str]:
    """The images that can be built: folders of training/images/ with a Dockerfile."""
    return sorted(path.parent.name for path in IMAGES.glob("*/Dockerfile"))


def dockerfile_of(image: str) -> Path:
    return IMAGES / image / "Dockerfile"


def base_of(image: str) -> str:
    """The image that it starts from, unless a mirror has its own: the default of `ARG BASE`."""
    found = _BASE.search(dockerfile_of(image).read_text())
    assert found, f"{dockerfile_of(image)} declares no `ARG BASE=`"
    return found[1]


def requirements_of(image: str) -> str:
    """Whose file in training/requirements/ names its libraries: its own, or the core's."""
    return image if (TRAINING / "requirements" / f"{image}.txt").exists() else "training"


@cache
def libraries_in(image: str) -> frozenset[str]:
    """Of `LIBRARIES`, those that it installs."""
    files = [PROJECT / source for source in _copied(image) if source.startswith("training/requirements/")]
    # A distribution is called as its module, with something behind it: tensorflow-cpu, paddlepaddle.
    lines = [line.lower() for file in files for line in file.read_text().splitlines()]
    return frozenset(library for library in LIBRARIES if any(line.startswith(library) for line in lines))


@cache
def source_digest(image: str) -> str:
    """Of the path and content of every source file."""
    digest = hashlib.sha256()
    for path in source_files(image):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(PROJECT).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:_DIGITS]


def source_files(image: str) -> list[Path]:
    """The Dockerfile, and every file that it copies."""
    patterns = _ignore_patterns()
    copied = {file for source in _copied(image) for file in _files(source)}
    kept = {file for file in copied if not _is_ignored(file.relative_to(PROJECT).as_posix(), patterns)}
    return sorted({dockerfile_of(image), *kept})


def _copied(image: str) -> Iterator[str]:
    """The sources of COPY instructions, as they are written; those of other build stages are no files of ours."""
    for line in dockerfile_of(image).read_text().replace("\\\n", " ").splitlines():
        instruction, *words = line.split() or [""]
        if instruction == "COPY" and not any(word.startswith("--from=") for word in words):
            yield from [word for word in words if not word.startswith("--")][:-1]


def _files(source: str) -> Iterator[Path]:
    for path in PROJECT.glob(source.rstrip("/")):
        yield from (file for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file())


def _ignore_patterns() -> list[tuple[re.Pattern[str], bool]]:
    """Each pattern of .dockerignore, and whether it keeps out or lets in again (`!`)."""
    lines = [line.strip() for line in _IGNORED.read_text().splitlines()]
    return [
        (_expression(line.removeprefix("!")), not line.startswith("!"))
        for line in lines
        if line and not line.startswith("#")
    ]


def _expression(pattern: str) -> re.Pattern[str]:
    """A path or a folder above it: `*` stays within one name, `**/` stands for any number of folders."""
    words = {"**/": "(.*/)?", "*": "[^/]*"}
    parts = re.split(r"(\*\*/|\*)", pattern)
    return re.compile("".join(words.get(part, re.escape(part)) for part in parts) + "(/.*)?")


def _is_ignored(path: str, patterns: list[tuple[re.Pattern[str], bool]]) -> bool:
    """The last pattern that matches decides."""
    return next((keeps_out for pattern, keeps_out in reversed(patterns) if pattern.fullmatch(path)), False)
