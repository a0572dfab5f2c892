"""What the tests ask of the cluster, by kubectl: the words that a user would type."""

import json
import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

from tests.cluster.paths import KUBECONFIG
from tests.cluster.toolchain import built

T = TypeVar("T")


def kubectl(*arguments: str, check: bool = True, stdin: str | None = None) -> str:
    command = [str(built("kubernetes") / "bin" / "kubectl"), "--kubeconfig", str(KUBECONFIG), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, input=stdin, timeout=120)
    if check and done.returncode:
        raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def get(kind: str, *arguments: str) -> list[dict[str, Any]]:
    """Objects of a kind; none when the kind is unknown."""
    text = kubectl("get", kind, *arguments, "-o", "json", "--ignore-not-found", check=False)
    if not text:
        return []
    found = json.loads(text)
    items: list[dict[str, Any]] = found["items"] if found["kind"].endswith("List") else [found]
    return items


def pods(run: str, namespace: str = "training") -> list[dict[str, Any]]:
    """The pods of a run, by name."""
    found = get("pods", "-n", namespace, "-l", f"app.kubernetes.io/instance={run}")
    return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))


def phases(run: str, namespace: str = "training") -> list[str]:
    return [pod["status"].get("phase", "Pending") for pod in pods(run, namespace)]


def logs(pod: str, namespace: str = "training", *options: str) -> str:
    return kubectl("logs", pod, "-n", namespace, *options, check=False)


def until(condition: Callable[[], T], *, within_s: float, what: Callable[[], object] = lambda: "") -> T:
    """The first true value of `condition`; `what` tells, when none comes, how things stand."""
    deadline = time.monotonic() + within_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s} s: {what()}")
        time.sleep(0.5)
    return value


def everything() -> set[str]:
    """Every object of the cluster by kind, namespace and name; but for what comes and goes by itself."""
    kinds = kubectl("api-resources", "--verbs=list", "-o", "name").split()
    passing = {"events", "events.events.k8s.io", "leases.coordination.k8s.io", "endpointslices.discovery.k8s.io"}
    listed = kubectl(
        "get",
        ",".join(kind for kind in kinds if kind not in passing),
        "-A",
        "-o",
        "custom-columns=K:.kind,S:.metadata.namespace,N:.metadata.name",
        "--no-headers",
        "--ignore-not-found",
    )
    return {" ".join(line.split()) for line in listed.splitlines()}
