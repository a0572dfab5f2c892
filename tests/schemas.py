"""Whether a manifest is what the API server would take, as strictly as `kubectl apply --validate=strict`.

Kinds of Kubernetes itself are held against its OpenAPI schemas, custom kinds against the schemas of their CRDs. A field
that the schema does not know is an error: the server would drop it, silently or with a warning that nobody reads.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

from infra.versions import KUBERNETES

_PROJECT = Path(__file__).parents[1]
_CRDS = [*_PROJECT.glob("infra/charts/*/crds/*.yaml"), *_PROJECT.glob("tests/crds/*.yaml")]

Manifest = dict[str, Any]
Place = tuple[str | int, ...]


def validate_manifest(manifest: Manifest) -> list[str]:
    """What is wrong with a manifest, each with its place; empty when it is valid."""
    return list(errors_of(manifest))


def errors_of(manifest: Manifest) -> Iterator[str]:
    """The same one by one, for who needs no more than the first."""
    schema = _custom_schemas().get((manifest["apiVersion"], manifest["kind"]))
    if schema is None:
        yield from _core_errors(manifest)
        return
    yield from _custom_errors(manifest, schema)
    # A CRD says nothing of `metadata`, which is the same for every kind.
    yield from _core_errors({"apiVersion": "v1", "kind": "ConfigMap", "metadata": manifest["metadata"]})
    yield from _pod_errors(manifest)


def _core_errors(manifest: Manifest) -> Iterator[str]:
    try:
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)
    except kubernetes_validate.ValidationError as error:
        yield f"{_place(error.absolute_path)}: {error.message}"
    except kubernetes_validate.SchemaNotFoundError as error:
        yield error.message


def _custom_errors(manifest: Manifest, schema: dict[str, Any]) -> Iterator[str]:
    for error in jsonschema.Draft202012Validator(schema).iter_errors(manifest):
        yield f"{_place(error.absolute_path)}: {error.message}"


def _pod_errors(manifest: Manifest) -> Iterator[str]:
    """Pod templates anew: the CRDs hold the pod's schema of the release that they were generated from."""
    for place, template in _pod_templates(manifest, ()):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": template.get("metadata", {}), "spec": template["spec"]}
        yield from (f"{_place(place)}.{error}" for error in _core_errors(pod))


def _pod_templates(node: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        if key == "template" and isinstance(child, dict) and "containers" in child.get("spec", {}):
            yield (*place, key), child
        else:
            yield from _pod_templates(child, (*place, key))


def _place(path: Iterable[str | int]) -> str:
    return ".".join(map(str, path)) or "manifest"


@cache
def crd(path: Path) -> dict[str, Any]:
    """A CRD's document; libyaml reads its two hundred kilobytes ten times as fast as Python does."""
    loaded: dict[str, Any] = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    return loaded


@cache
def _custom_schemas() -> dict[tuple[str, str], dict[str, Any]]:
    """Closed schemas of every CRD, by apiVersion and kind."""
    schemas = {}
    for path in _CRDS:
        spec = crd(path)["spec"]
        for version in spec["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            closed = _closed({**schema, "properties": {**schema["properties"], "metadata": True}})
            schemas[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = closed
    return schemas


def _closed(schema: Any) -> Any:
    """A CRD's schema with pruning as an error: what neither it nor `x-kubernetes-preserve-unknown-fields` lets in."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    is_object = schema.get("type") == "object"
    if is_object and "additionalProperties" not in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        closed["additionalProperties"] = False
    return closed
