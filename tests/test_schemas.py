"""The validation of manifests is worth nothing unless it refuses what the API server would drop."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.schemas import errors_of, validate_manifest
from workloads.launchers.registry import manifests_of
from workloads.stacks import load_experiment, stack_path

# Maps whose keys are the user's own.
_FREE = {"labels", "annotations", "nodeSelector", "requests", "limits", "selector", "matchLabels"}


def shipped_manifests() -> Iterator[Any]:
    for stack in ("mnist", "mnist-indexed"):
        for manifest in manifests_of(load_experiment(stack_path(stack)).run):
            yield pytest.param(manifest, id=f"{stack}-{manifest['kind']}")


def key_paths(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every key whose spelling the API decides; of a list's items, which are alike, the first."""
    if isinstance(node, dict):
        for key, child in node.items():
            yield (*path, key)
            if key not in _FREE:
                yield from key_paths(child, (*path, key))
    elif isinstance(node, list) and node:
        yield from key_paths(node[0], (*path, 0))


def misspelled(manifest: dict[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
    changed = copy.deepcopy(manifest)
    parent: Any = changed
    for key in path[:-1]:
        parent = parent[key]
    parent[f"{path[-1]}x"] = parent.pop(path[-1])
    return changed


@pytest.mark.parametrize("manifest", list(shipped_manifests()))
def test_one_letter_too_many_in_any_field_of_a_manifest_is_an_error(manifest: dict[str, Any]) -> None:
    # Without the first three no schema is looked up; replica types are the operator's to judge, and alike.
    skipped = {("apiVersion",), ("kind",), ("metadata",), ("spec", "pytorchReplicaSpecs", "Master")}
    decided = [path for path in key_paths(manifest) if path not in skipped and "Worker" not in path]
    assert len(decided) > 3
    assert [path for path in decided if not any(errors_of(misspelled(manifest, path)))] == []


def test_a_custom_kind_of_no_known_crd_is_an_error() -> None:
    manifest = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": {"name": "x"}, "spec": {}}
    assert "Couldn't find schema" in validate_manifest(manifest)[0]


def test_a_value_of_the_wrong_type_in_a_custom_resource_is_an_error() -> None:
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "x"}}
    assert validate_manifest({**queue, "spec": {"weight": 1}}) == []
    assert validate_manifest({**queue, "spec": {"weight": "one"}}) == ["spec.weight: 'one' is not of type 'integer'"]


def test_a_pod_template_in_a_custom_resource_is_judged_by_its_crd_and_by_the_pods_own_schema() -> None:
    (*_, job) = manifests_of(load_experiment(stack_path("mnist")).run)
    job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]["tty"] = "yes"
    place = "spec.pytorchReplicaSpecs.Master.template.spec.containers.0.tty: 'yes' is not of type"
    assert len([error for error in validate_manifest(job) if error.startswith(place)]) == 2
