"""The stand-in for pulumi-kubernetes under the real CLI, against a real API server with its controllers.

Each test has a stack and a namespace of its own.
"""

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.plugins.kubernetes.cluster import Reference
from tests.plugins.stack import NEEDS_CLUSTER, Failed, Stack

pytestmark = NEEDS_CLUSTER

_SECRET = "correct-horse-battery-staple"
_CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gauges.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Gauge, listKind: GaugeList, plural: gauges, singular: gauge}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties: {spec: {type: object, properties: {level: {type: integer}}}}
"""


def _limits(stack: Stack, cpu: str) -> dict[str, Any]:
    return stack.manifest("LimitRange", "limits", spec={"limits": [{"type": "Container", "max": {"cpu": cpu}}]})


def _deployment(stack: Stack, *, replicas: int, timeout_s: int = 5) -> dict[str, Any]:
    labels = {"app": "absent"}
    container = {"name": "main", "image": "registry.invalid/absent:1"}
    return stack.manifest(
        "Deployment",
        "absent",
        "apps/v1",
        metadata={"annotations": {"pulumi.com/timeoutSeconds": str(timeout_s)}},
        spec={
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    )


def _eventually(holds: Callable[[], bool], within_s: float = 60) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.2)
    return False


def test_objects_are_made_compared_edited_replaced_and_found_adrift(stack: Stack) -> None:
    def plan(cpu: str, text: str, *, label: str = "x") -> None:
        config = stack.manifest("ConfigMap", "config", data={"text": text}, metadata={"labels": {"a.b/c": label}})
        secret = stack.manifest("Secret", "secret", stringData={"password": _SECRET})
        stack.plan(objects={"limits": _limits(stack, cpu), "config": config, "secret": secret})

    plan("1000m", "one")
    stack.up()
    stack.up("--expect-no-changes")
    assert _SECRET not in stack.run("stack", "export")

    plan("2", "one", label="y")
    steps = stack.preview()
    assert {name: step["op"] for name, step in steps.items()} == {"limits": "update", "config": "update"}
    assert list(steps["limits"]["detailedDiff"]) == ["spec.limits[0].max.cpu"]
    assert list(steps["config"]["detailedDiff"]) == ['metadata.labels["a.b/c"]']

    plan("1000m", "two")
    before = stack.cluster.get(stack.reference("ConfigMap", "config"))
    stack.up()
    after = stack.cluster.get(stack.reference("ConfigMap", "config"))
    assert before is not None
    assert after is not None
    assert after["data"] == {"text": "two"}
    assert after["metadata"]["uid"] != before["metadata"]["uid"], "an edited ConfigMap is replaced"

    stack.cluster.apply(_limits(stack, "3"), manager="somebody", force=True)
    stack.cluster.delete(stack.reference("ConfigMap", "config"), "Foreground")
    stack.run("refresh", "--yes", "--skip-preview")
    with pytest.raises(Failed, match=r"conflict with .*somebody"):
        stack.preview()
    steps = stack.preview(PULUMI_K8S_ENABLE_PATCH_FORCE="true")
    ops = {name: step["op"] for name, step in steps.items()}
    assert ops == {"cluster": "update", "limits": "update", "config": "create"}, "the SDK makes it the provider's input"
    assert list(steps["limits"]["detailedDiff"]) == ["spec.limits[0].max.cpu"]


def test_a_misspelt_field_is_an_error_of_the_preview(stack: Stack) -> None:
    stack.plan()
    stack.up()
    stack.plan(objects={"config": stack.manifest("ConfigMap", "config", dta={"text": "one"})})
    with pytest.raises(Failed, match=r"dta: field not declared in schema"):
        stack.preview()


def test_what_does_not_get_ready_is_recorded_with_the_reason_and_mended_by_the_next_update(stack: Stack) -> None:
    stack.plan(objects={"absent": _deployment(stack, replicas=1)})
    with pytest.raises(Failed, match=r"(?s)not ready after 5 s: availableReplicas is 0 of 1.*minimum availability"):
        stack.up()
    stack.plan(objects={"absent": _deployment(stack, replicas=0)})
    stack.up()
    stack.up("--expect-no-changes")


def test_an_update_that_was_killed_leaves_no_plugin_and_can_be_repeated(stack: Stack) -> None:
    stack.plan(objects={"absent": _deployment(stack, replicas=1, timeout_s=600)})
    command = ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive"]
    with subprocess.Popen(
        command, cwd=stack.folder, env=stack.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as cli:
        made = _eventually(lambda: _exists(stack, stack.reference("Deployment", "absent", "apps/v1")))
        assert _plugins(stack)
        cli.send_signal(signal.SIGKILL)
    assert made
    assert _eventually(lambda: not _plugins(stack)), "the plugin outlives the CLI"

    stack.run("cancel", "--yes")
    stack.plan(objects={"absent": _deployment(stack, replicas=0)})
    with pytest.raises(Failed, match=r"Deployment .*/absent already exists\n.*PULUMI_K8S_UPSERT_EXISTING_OBJECTS=true"):
        stack.up()
    stack.up(PULUMI_K8S_UPSERT_EXISTING_OBJECTS="true")
    deployment = stack.cluster.get(stack.reference("Deployment", "absent", "apps/v1"))
    assert deployment is not None
    assert deployment["spec"]["replicas"] == 0


def _exists(stack: Stack, reference: Reference) -> bool:
    return stack.cluster.get(reference) is not None


def _plugins(stack: Stack) -> list[int]:
    """Processes of stand-ins that were started for this stack."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            of_stack = f"{stack.folder}/state".encode() in (process / "environ").read_bytes()
            is_plugin = b"tests.plugins" in (process / "cmdline").read_bytes()
        except OSError:  # ended meanwhile, or a kernel thread
            continue
        if of_stack and is_plugin:
            found.append(int(process.name))
    return found


def test_a_group_waits_for_its_definitions_before_their_objects(stack: Stack) -> None:
    group = f"{stack.namespace}.example.com"
    (stack.folder / "crds.yaml").write_text(_CRD.replace("GROUP", group))
    gauge = stack.manifest("Gauge", "gauge", f"{group}/v1", spec={"level": 3})
    stack.plan(groups={"crds": {"files": ["crds.yaml"]}}, objects={"gauge": gauge})
    stack.preview()
    stack.up()
    stack.up("--expect-no-changes")
    live = stack.cluster.get(stack.reference("Gauge", "gauge", f"{group}/v1"))
    assert live is not None
    assert live["spec"] == {"level": 3}
    assert f"::crds:gauges.{group}" in stack.run("stack", "export")


def test_a_preview_goes_on_without_its_cluster(stack: Stack) -> None:
    stack.plan(objects={"config": stack.manifest("ConfigMap", "config", data={"text": "one"})})
    kubeconfig = yaml.safe_load(Path(stack.kubeconfig).read_text())
    for entry in kubeconfig["clusters"]:
        entry["cluster"]["server"] = "https://127.0.0.1:9"
    nowhere = stack.folder / "nowhere"
    nowhere.write_text(yaml.safe_dump(kubeconfig))
    shown = stack.run("preview", KUBECONFIG=str(nowhere))
    assert "cluster cannot be reached" in shown
    assert "+ 4 to create" in shown
