"""A stack of a tiny program, run by the real CLI with the stand-ins on its PATH, against a real API server."""

import json
import os
import secrets
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.paths import KUBECONFIG
from tests.plugins.kubernetes.cluster import Cluster, Manifest, Reference
from tests.plugins.kubernetes.kubeconfig import kubeconfig_of

BIN = Path(__file__).parent / "bin"
_RUN_TIMEOUT_S = 180

# Marks of tests that run the CLI.
NEEDS_CLUSTER = [
    pytest.mark.cluster,
    pytest.mark.skipif(not KUBECONFIG.exists(), reason="no cluster; first: make cluster"),
    *(
        pytest.mark.skipif(shutil.which(command) is None, reason=f"{command} is not on PATH")
        for command in ("pulumi", "pulumi-language-python", "helm")
    ),
]

# Objects one after another, in the plan's order, then the rest.
_PROGRAM = """
import json
import pathlib

import pulumi
import pulumi_kubernetes as kubernetes

plan = json.loads(pathlib.Path("plan.json").read_text())
provider = kubernetes.Provider("cluster", cluster_identifier="test")
made = []


def options():
    return pulumi.ResourceOptions(provider=provider, depends_on=list(made))


for name, group in plan.get("groups", {}).items():
    made.append(kubernetes.yaml.v2.ConfigGroup(name, opts=options(), **group))
for name, manifest in plan.get("objects", {}).items():
    group_version = manifest["apiVersion"] if "/" in manifest["apiVersion"] else "core/" + manifest["apiVersion"]
    token = f"kubernetes:{group_version}:{manifest['kind']}"
    made.append(pulumi.CustomResource(name=name, t=token, props=manifest, opts=options()))
for name, release in plan.get("releases", {}).items():
    made.append(kubernetes.helm.v3.Release(name, opts=options(), **release))
"""


class Failed(Exception):
    """What the CLI printed."""


@dataclass
class Stack:
    folder: Path
    kubeconfig: str
    namespace: str = field(default_factory=lambda: f"plugin-{secrets.token_hex(4)}")

    def __post_init__(self) -> None:
        self.cluster = Cluster(kubeconfig_of(self.kubeconfig, None), "default")
        (self.folder / "state").mkdir()
        (self.folder / "Pulumi.yaml").write_text("name: plugin\nruntime: python\n")
        (self.folder / "__main__.py").write_text(_PROGRAM)
        self.run("stack", "init", "test")

    def plan(self, *, namespace: bool = True, **parts: dict[str, Any]) -> None:
        """What the program is to make, in a namespace of its own."""
        own = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        if namespace:
            parts["objects"] = {"namespace": own, **parts.get("objects", {})}
        (self.folder / "plan.json").write_text(json.dumps(parts))

    def manifest(self, kind: str, name: str, api_version: str = "v1", **rest: Any) -> Manifest:
        metadata = {"name": name, "namespace": self.namespace, **rest.pop("metadata", {})}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}

    def reference(self, kind: str, name: str, api_version: str = "v1") -> Reference:
        return Reference(api_version=api_version, kind=kind, namespace=self.namespace, name=name)

    def up(self, *flags: str, **environment: str) -> str:
        return self.run("up", "--yes", "--skip-preview", *flags, **environment)

    def preview(self, **environment: str) -> dict[str, dict[str, Any]]:
        """The steps that change something, by the resource's name."""
        steps = json.loads(self.run("preview", "--json", **environment))["steps"]
        return {step["urn"].rpartition("::")[2]: step for step in steps if step["op"] != "same"}

    def run(self, *command: str, **environment: str) -> str:
        done = subprocess.run(
            ["pulumi", *command, "--non-interactive"],
            cwd=self.folder,
            env={**self.environment(), **environment},
            capture_output=True,
            text=True,
            timeout=_RUN_TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            raise Failed(f"pulumi {' '.join(command)}:\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "KUBECONFIG": self.kubeconfig,
            "PATH": os.pathsep.join([str(BIN), str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PULUMI_BACKEND_URL": f"file://{self.folder}/state",
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_HOME": f"{self.folder}/home",
            "PULUMI_SKIP_UPDATE_CHECK": "1",
        }
