"""Builds and pushes one image with buildah or docker: the commands, and the digest that the registry knows it by."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from workloads.images import is_on_this_machine
from workloads.programs import PROJECT

ToolName = Literal["buildah", "docker"]


class BuildFailed(Exception):
    """What went wrong, what would be right, and what the tool said; 2 where nothing was tried, else 1."""

    def __init__(self, message: str, fix: str, *, output: str = "", exit_code: int = 2) -> None:
        super().__init__(message)
        self.message, self.fix, self.output, self.exit_code = message, fix, output, exit_code


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One image, ready to be built."""

    tag: str
    dockerfile: Path
    base: str
    source: str
    """The digest of its files, which becomes its version."""
    from_scratch: bool
    """Take nothing from earlier builds."""
    options: Sequence[str]
    """The user's own, for the tool's build command."""


def find_tool(wanted: ToolName | None) -> ToolName:
    """The one that is wanted, else the first that this machine has."""
    names = [wanted] if wanted else get_args(ToolName)
    for name in names:
        if shutil.which(name):
            return name
    raise BuildFailed(
        f"{' and '.join(names)} {'is' if wanted else 'are'} not on PATH",
        "install buildah (`apt-get install buildah`) or docker, or let a machine build that has one",
    )


def build(tool: ToolName, recipe: Recipe, *, verbose: bool) -> None:
    command = [
        *(tool, "build", "--file", str(recipe.dockerfile), "--tag", recipe.tag),
        *("--build-arg", f"BASE={recipe.base}", "--label", f"org.opencontainers.image.version={recipe.source}"),
    ]
    if tool == "buildah":
        command.append("--layers")  # docker always keeps them: an edit of training/ must not install torch again
        if is_on_this_machine(recipe.base):
            command.append("--tls-verify=false")
    if recipe.from_scratch:
        command += ["--pull", "--no-cache"]
    _run([*command, *recipe.options, "."], f"{tool} cannot build {recipe.dockerfile.relative_to(PROJECT)}", verbose)


def push(tool: ToolName, tag: str, *, verbose: bool) -> str:
    """Gives the digest, `sha256:…`."""
    if tool == "docker":
        _run([tool, "push", tag], f"docker cannot push {tag}", verbose)
        return _digest_in_docker(tag)
    with tempfile.TemporaryDirectory() as folder:
        digest = Path(folder) / "digest"
        command = [tool, "push", "--digestfile", str(digest)]
        if is_on_this_machine(tag):
            # Nothing travels, so the least compression is the fastest: gzip takes minutes for 5 GB of torch.
            command += ["--tls-verify=false", "--compression-format", "zstd", "--compression-level", "1"]
        _run([*command, tag, f"docker://{tag}"], f"buildah cannot push {tag}", verbose)
        return digest.read_text().strip()


def _digest_in_docker(tag: str) -> str:
    """docker learns it when it pushes, and keeps one for each repository."""
    command = ["docker", "image", "inspect", "--format", "{{json .RepoDigests}}", tag]
    references: list[str] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    repository = tag.rpartition(":")[0]
    return next(found.partition("@")[2] for found in references if found.startswith(f"{repository}@"))


def _run(command: Sequence[str], failure: str, verbose: bool) -> None:
    """The tool's own output goes to stderr as it comes, or into the error."""
    done = subprocess.run(
        command,
        cwd=PROJECT,
        stdout=sys.stderr if verbose else subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        fix = "see what it says above; options for it go after `--`, such as `-- --isolation chroot`"
        if command[1] == "push":
            registry = command[-1].removeprefix("docker://").partition("/")[0]
            fix = f"see what it says above; a registry that wants a login: {command[0]} login {registry}"
        raise BuildFailed(failure, fix, output=done.stdout or "", exit_code=1)
