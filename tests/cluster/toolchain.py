"""Builds the tools from their published Go modules: Kubernetes, Pulumi, Helm, the operators.

Each is a folder of tools/ with a go.mod, whose `tool` lines are the commands, and its go.sum. What is built is kept
under the hash of the two, so a second build costs nothing. Standard library only: this runs while the project's own
environment is still being installed.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.paths import CACHE, TOOLS

_GO = "the Go toolchain (1.24 or newer)"
_COMPILED = CACHE / "go-build"


class BuildFailed(Exception):
    """One line for the user, and what the compiler said."""


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A folder of tools/."""

    name: str
    module: str
    variables: dict[str, str] = field(default_factory=dict)
    """Go variables set by the linker; `{version}` is the module's."""
    extras: dict[str, str] = field(default_factory=dict)
    """Further files of the module that are needed beside the commands: glob in the module, folder in the build."""


TOOLCHAIN = (
    Tool(
        name="kubernetes",
        module="k8s.io/kubernetes",
        # Unset, the API server calls itself v0.0.0-master, and clients refuse to talk to it.
        variables={
            "k8s.io/component-base/version.gitVersion": "{version}",
            "k8s.io/component-base/version.gitMajor": "1",
            "k8s.io/component-base/version.gitMinor": "33",
        },
    ),
    Tool(name="coredns", module="github.com/coredns/coredns"),
    Tool(name="helm", module="helm.sh/helm/v3"),
    Tool(
        name="pulumi",
        module="github.com/pulumi/pulumi/pkg/v3",
        # Unset, `pulumi version` is empty and the Automation API refuses to start.
        variables={"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": "{version}"},
    ),
    Tool(
        name="pulumi-python",
        module="github.com/pulumi/pulumi/sdk/v3",
        extras={"python/cmd/pulumi-language-python-exec": "bin", "python/dist/*": "bin"},
    ),
    Tool(
        name="volcano",
        module="volcano.sh/volcano",
        extras={
            "installer/helm/chart/volcano": "charts",
            "installer/dockerfile/webhook-manager/gen-admission-secret.sh": "scripts",
        },
    ),
    Tool(name="training-operator", module="github.com/kubeflow/training-operator"),
    Tool(name="mpi-operator", module="github.com/kubeflow/mpi-operator"),
    Tool(name="etcd", module="go.etcd.io/etcd/server/v3"),
    Tool(name="jobset", module="sigs.k8s.io/jobset"),
    Tool(name="trainer", module="github.com/kubeflow/trainer/v2"),
    Tool(name="kwok", module="sigs.k8s.io/kwok", extras={"kustomize/stage": "stages"}),
)


def built(name: str) -> Path:
    """The folder of a tool that `build` has made."""
    return _folder(next(tool for tool in TOOLCHAIN if tool.name == name))


def command_folders() -> list[Path]:
    """Folders for PATH: the commands that people and tests call."""
    return [built(name) / "bin" for name in ("kubernetes", "helm", "pulumi", "pulumi-python")]


def build(tools: Iterable[Tool] = TOOLCHAIN) -> None:
    """Builds what is missing, one after another: the Go compiler uses every core by itself."""
    missing = [tool for tool in tools if not _folder(tool).exists()]
    if missing and shutil.which("go") is None:
        raise BuildFailed(f"{_GO} is not on PATH; the cluster's tools are built with it")
    for tool in missing:
        _build(tool)
    # Five gigabytes, of which only the next version of a tool would use a part.
    shutil.rmtree(_COMPILED, ignore_errors=True)


def _build(tool: Tool) -> None:
    final = _folder(tool)
    partial = final.with_name(f"{final.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "bin").mkdir(parents=True)
    started = time.monotonic()
    _compile(tool, partial / "bin")
    _copy_extras(tool, partial)
    partial.rename(final)
    _say(f"built {tool.name} in {time.monotonic() - started:.0f} s", last=True)


def _compile(tool: Tool, destination: Path) -> None:
    folder = TOOLS / tool.name
    _say(f"building {tool.name}: downloading its modules", last=not sys.stderr.isatty())
    packages = _go(folder, "list", "-mod=readonly", "-deps", "tool").splitlines()
    variables = "".join(f" -X {name}={value}" for name, value in _linked(tool).items())
    command = ["go", "build", "-v", "-mod=readonly", "-trimpath", "-ldflags", f"-s -w{variables}"]
    process = subprocess.Popen(
        [*command, "-o", f"{destination}/", "tool"],
        cwd=folder,
        env=_environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said: list[str] = []
    for line in process.stderr:  # the name of each package when it is compiled, and errors
        said.append(line)
        if sys.stderr.isatty():
            _say(f"building {tool.name}: {len(said)} of at most {len(packages)} packages")
    if process.wait() != 0:
        raise BuildFailed(f"{tool.name} does not build:\n{''.join(said[-20:])}")


def _copy_extras(tool: Tool, destination: Path) -> None:
    module = Path(_module(tool)["Dir"]) if tool.extras else Path()
    for pattern, folder in tool.extras.items():
        target = destination / folder
        target.mkdir(exist_ok=True)
        for source in sorted(module.glob(pattern)):
            copied = target / source.name
            if source.is_dir():
                shutil.copytree(source, copied)
            else:
                shutil.copy(source, copied)
            _make_usable(copied)


def _make_usable(copied: Path) -> None:
    """Files of the module cache are read-only, and a module's archive has lost its scripts' run bits."""
    for path in [copied, *copied.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or path.read_bytes().startswith(b"#!") else 0o644)


def _folder(tool: Tool) -> Path:
    files = [TOOLS / tool.name / name for name in ("go.mod", "go.sum")]
    recipe = json.dumps([tool.variables, tool.extras], sort_keys=True).encode()
    digest = hashlib.sha256(b"\0".join([recipe, *(path.read_bytes() for path in files)])).hexdigest()
    return CACHE / "tools" / f"{tool.name}-{digest[:12]}"


def _linked(tool: Tool) -> dict[str, str]:
    version = _module(tool)["Version"]
    return {name: value.format(version=version) for name, value in tool.variables.items()}


def _module(tool: Tool) -> dict[str, str]:
    module: dict[str, str] = json.loads(_go(TOOLS / tool.name, "list", "-mod=readonly", "-m", "-json", tool.module))
    return module


def _go(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["go", *arguments], cwd=folder, env=_environment(), capture_output=True, text=True)
    if done.returncode:
        raise BuildFailed(f"go {arguments[0]} fails for {folder.name}:\n{done.stderr[-3000:]}")
    return done.stdout


def _environment() -> dict[str, str]:
    # No cgo: what is built must run in images that have no C library.
    return {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOCACHE": str(_COMPILED)}


def _say(text: str, *, last: bool = False) -> None:
    """A line that the next one overwrites on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="\n" if last else "", file=sys.stderr, flush=True)
    elif last:
        print(text, file=sys.stderr, flush=True)
