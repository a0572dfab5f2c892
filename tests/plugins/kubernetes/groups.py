"""yaml/v2:ConfigGroup: every object of some YAML as a resource of its own, below the component."""

import glob
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pulumi
import yaml
from pulumi.provider.provider import ConstructResult

from tests.plugins.kubernetes.cluster import Cluster, Manifest, Unreachable
from tests.plugins.kubernetes.discovery import NoSuchKind
from tests.plugins.provider import Refused

TYPE = "kubernetes:yaml/v2:ConfigGroup"


def construct_group(
    cluster: Cluster,
    name: str,
    inputs: Mapping[str, Any],
    options: pulumi.ResourceOptions,
    *,
    version: str,
    default_namespace: str,
) -> ConstructResult:
    component = pulumi.ComponentResource(TYPE, name, None, options)

    def register(given: Mapping[str, Any]) -> list[pulumi.Resource]:
        made: list[tuple[Manifest, pulumi.Resource]] = []
        for manifest in _in_order([_named(manifest) for manifest in _manifests(given)]):
            _place(manifest, cluster, default_namespace)
            if given.get("skipAwait"):
                manifest["metadata"].setdefault("annotations", {})["pulumi.com/skipAwait"] = "true"
            needed = [resource for other, resource in made if _needs(manifest, other)]
            opts = pulumi.ResourceOptions(parent=component, depends_on=needed, version=version)
            made.append((manifest, _register(manifest, given.get("resourcePrefix") or name, opts)))
        return [resource for _, resource in made]

    resources = pulumi.Output.from_input(dict(inputs)).apply(register)
    component.register_outputs({"resources": resources})
    return ConstructResult(component.urn, {"resources": resources})


def _manifests(given: Mapping[str, Any]) -> Iterator[Manifest]:
    yield from given.get("objs") or []
    for pattern in given.get("files") or []:
        # The plugin runs in the project's folder, so a path is relative to it.
        files = sorted(glob.glob(pattern)) if glob.has_magic(pattern) else [pattern]  # noqa: PTH207
        for file in files:
            try:
                text = Path(file).read_text()
            except OSError as error:
                raise Refused(f"{file} cannot be read: {error.strerror}") from None
            yield from _parsed(text, file)
    yield from _parsed(given.get("yaml") or "", "yaml")


def _parsed(text: str, source: str) -> Iterator[Manifest]:
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise Refused(f"{source} is not YAML: {error}") from None
    for document in documents:
        if document:
            # YAML's dates are text to Kubernetes.
            plain = json.loads(json.dumps(document, default=str))
            yield from plain["items"] if plain.get("kind", "").endswith("List") and "items" in plain else [plain]


def _named(manifest: Manifest) -> Manifest:
    for keys in (["apiVersion"], ["kind"], ["metadata", "name"]):
        value: Any = manifest
        for key in keys:
            value = (value or {}).get(key)
        if not value:
            raise Refused(f"an object has no {'.'.join(keys)}: {json.dumps(manifest)[:100]}")
    return manifest


def _in_order(manifests: list[Manifest]) -> list[Manifest]:
    """What others need comes first."""
    return sorted(manifests, key=lambda manifest: manifest["kind"] not in ("CustomResourceDefinition", "Namespace"))


def _needs(manifest: Manifest, other: Manifest) -> bool:
    if other["kind"] == "Namespace":
        return bool(manifest["metadata"].get("namespace") == other["metadata"]["name"])
    if other["kind"] == "CustomResourceDefinition":
        return _kind_of(other) == (manifest["apiVersion"].rpartition("/")[0], manifest["kind"])
    return False


def _kind_of(crd: Manifest) -> tuple[str, str]:
    return crd["spec"]["group"], crd["spec"]["names"]["kind"]


def _place(manifest: Manifest, cluster: Cluster, default_namespace: str) -> None:
    if "namespace" not in manifest["metadata"]:
        try:
            if cluster.is_namespaced(manifest["apiVersion"], manifest["kind"]):
                manifest["metadata"]["namespace"] = default_namespace
        except (NoSuchKind, Unreachable):  # its CRD may be beside it: the server will know
            return


def _register(manifest: Manifest, prefix: str, options: pulumi.ResourceOptions) -> pulumi.Resource:
    metadata, api_version, kind = manifest["metadata"], manifest["apiVersion"], manifest["kind"]
    place = f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else metadata["name"]
    group_version = api_version if "/" in api_version else f"core/{api_version}"
    properties: dict[str, Any] = {**manifest}
    if (api_version, kind) == ("v1", "Secret"):
        for key in properties.keys() & {"data", "stringData"}:
            properties[key] = pulumi.Output.secret(properties[key])
    return pulumi.CustomResource(f"kubernetes:{group_version}:{kind}", f"{prefix}:{place}", properties, options)
