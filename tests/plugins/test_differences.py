"""What changed, and what of it replaces."""

import pytest

from tests.plugins.differences import changes_between, property_path
from tests.plugins.kubernetes.objects import Objects
from tests.plugins.kubernetes.replacement import replacing
from tests.plugins.values import Path


def test_every_leaf_that_differs_is_named() -> None:
    old = {"spec": {"replicas": 1, "args": ["a", "b"], "gone": {"x": 1}}}
    new = {"spec": {"replicas": 2, "args": ["a", "c", "d"], "new": {"y": 1}}}
    assert changes_between(old, new) == {
        ("spec", "replicas"): "UPDATE",
        ("spec", "args", 1): "UPDATE",
        ("spec", "args", 2): "ADD",
        ("spec", "gone"): "DELETE",
        ("spec", "new"): "ADD",
    }


@pytest.mark.parametrize(("old", "new"), [(1, True), (0, False), ("1", 1), ({}, []), ([], None)])
def test_values_of_different_types_differ(old: object, new: object) -> None:
    assert changes_between({"x": old}, {"x": new}) == {("x",): "UPDATE"}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("spec", "containers", 0, "image"), "spec.containers[0].image"),
        (("metadata", "labels", "a.b/c"), 'metadata.labels["a.b/c"]'),
        (("data", 'a"[b'), 'data["a\\"[b"]'),
    ],
)
def test_paths_are_written_as_pulumi_reads_them(path: Path, text: str) -> None:
    assert property_path(path) == text


@pytest.mark.parametrize(
    ("api_version", "kind", "path", "replaces"),
    [
        ("v1", "ConfigMap", ("data", "a"), True),
        ("v1", "ConfigMap", ("metadata", "labels", "a"), False),
        ("v1", "ConfigMap", ("metadata", "name"), True),
        ("apps/v1", "Deployment", ("spec", "selector", "matchLabels", "a"), True),
        ("apps/v1", "Deployment", ("spec", "template", "spec"), False),
        ("batch/v1", "Job", ("spec", "template", "spec", "containers", 0, "image"), True),
        ("batch/v1", "Job", ("spec", "suspend"), False),
        ("kubeflow.org/v1", "PyTorchJob", ("spec", "runPolicy"), False),
    ],
)
def test_what_the_server_would_refuse_to_change_replaces(
    api_version: str, kind: str, path: Path, replaces: bool
) -> None:
    assert replacing({path: "UPDATE"}, api_version, kind) == (frozenset([path]) if replaces else frozenset())


def test_a_replacement_under_the_same_name_is_deleted_first(objects: Objects) -> None:
    def config(name: str, text: str, **annotations: str) -> dict[str, object]:
        metadata = {"name": name, "annotations": annotations}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}

    assert objects.diff(config("a", "1"), config("a", "2")).delete_first
    assert not objects.diff(config("a", "1"), config("b", "1")).delete_first
    autonamed = {"pulumi.com/autonamed": "true"}
    assert not objects.diff(config("a", "1", **autonamed), config("a", "2", **autonamed)).delete_first
