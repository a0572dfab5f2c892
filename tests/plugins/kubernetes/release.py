"""helm.sh/v3:Release: a chart installed, upgraded and uninstalled by Helm itself."""

import hashlib
from collections.abc import Callable
from typing import Any

import yaml

from tests.plugins.differences import Difference, below, changes_between
from tests.plugins.kubernetes.cluster import Cluster
from tests.plugins.kubernetes.helm import Helm, HelmFailed
from tests.plugins.provider import Checked, Live, Refused, Resource, Unfinished, unique_name
from tests.plugins.values import Properties, contains_unknown

TYPE = "kubernetes:helm.sh/v3:Release"
_TIMEOUT_S = 300  # Helm's own, and the real provider's
_UNDERSTOOD = {
    *("name", "namespace", "chart", "version", "values", "valueYamlFiles", "compat"),
    *("atomic", "createNamespace", "maxHistory", "skipAwait", "skipCrds", "timeout"),
}
# A Helm that was killed leaves the release so, and refuses to touch it again. So does the real provider
# (pulumi-kubernetes#2054): nobody can know whether that Helm still runs on some other machine.
_INTERRUPTED = "another operation (install/upgrade/rollback) is in progress"
_IN_USE = "cannot re-use a name that is still in use"


class Releases:
    def __init__(self, cluster: Cluster, default_namespace: str) -> None:
        self._cluster = cluster
        self._helm = Helm(cluster.kubeconfig)
        self._default_namespace = default_namespace

    def check(self, resource: Resource, old: Properties, new: Properties, seed: bytes) -> Checked:
        others = new.keys() - _UNDERSTOOD - {"repositoryOpts"} | new.get("repositoryOpts", {}).keys() - {"repo"}
        if others:
            raise Refused(f"the stand-in for helm.sh/v3:Release does not know {', '.join(sorted(others))}")
        inputs = {"namespace": self._default_namespace, **new}
        inputs["name"] = new.get("name") or old.get("name") or unique_name(resource.name, seed)
        if not inputs.get("skipAwait"):
            inputs.setdefault("timeout", _TIMEOUT_S)
        if contains_unknown(inputs):
            return Checked(inputs=inputs)
        try:
            manifest = self._helm.template(inputs)
        except HelmFailed as error:
            reason = f"{error}; check the chart name and repository configuration."
            return Checked(inputs=inputs, failures={"chart": reason})
        # A chart that is a folder of the project changes without its version.
        inputs["checksum"] = hashlib.sha256(manifest.encode()).hexdigest()
        inputs["resourceNames"] = _resource_names(manifest)
        return Checked(inputs=inputs)

    def diff(self, old: Properties, new: Properties) -> Difference:
        changes = changes_between(old, new)
        return Difference(changes=changes, replacing=below(changes, [("name",), ("namespace",)]))

    def create(self, resource: Resource, inputs: Properties) -> Live:
        if resource.preview:
            return Live(resource_id="", state=inputs, inputs=inputs)
        return self._carried_out(self._helm.install, inputs, "installed")

    def update(self, resource: Resource, inputs: Properties) -> Live:
        if resource.preview:
            return Live(resource_id="", state=inputs, inputs=inputs)
        return self._carried_out(self._helm.upgrade, inputs, "upgraded")

    def read(self, resource_id: str, inputs: Properties) -> Live | None:
        self._demand_cluster("read")
        namespace, _, name = resource_id.partition("/")
        try:
            found = self._helm.status({"namespace": namespace, "name": name})
        except HelmFailed as error:
            raise Refused(f"release {resource_id} cannot be read: {error}") from None
        if found is None:
            return None
        if not inputs:  # an import
            inputs = {"name": name, "namespace": namespace, "chart": found["chart"], "version": found["version"]}
        live = {**inputs, "values": found["values"]} if found["values"] or "values" in inputs else inputs
        if "version" in inputs:
            live = {**live, "version": found["version"]}
        return Live(resource_id=resource_id, state=_state(live, found), inputs=live)

    def delete(self, resource_id: str, inputs: Properties) -> None:
        self._demand_cluster("uninstalled")
        try:
            self._helm.uninstall(inputs)
        except HelmFailed as error:
            raise Refused(f"release {resource_id} was not uninstalled: {error}") from None

    def cancel(self) -> None:
        self._helm.cancel()

    def _carried_out(self, action: Callable[[Properties], None], inputs: Properties, done: str) -> Live:
        self._demand_cluster(done)
        resource_id = f"{inputs['namespace']}/{inputs['name']}"
        try:
            action(inputs)
        except HelmFailed as error:
            message = f"release {resource_id} was not {done}: {_mended(str(error), inputs)}"
            # What failed halfway and was not taken back is recorded, for the next update to go on from.
            found = None if _IN_USE in message else self._helm.status(inputs)
            if found is None:
                raise Refused(message) from None
            state = _state(inputs, found)
            raise Unfinished(message, resource_id=resource_id, state=state, inputs=inputs) from None
        found = self._helm.status(inputs)
        if found is None:
            raise Refused(f"release {resource_id} was {done}, and is gone already")
        return Live(resource_id=resource_id, state=_state(inputs, found), inputs=inputs)

    def _demand_cluster(self, done: str) -> None:
        problem = self._cluster.problem()
        if problem is not None:
            raise Refused(f"the release cannot be {done}, as the cluster cannot be reached: {problem}")


def _mended(error: str, inputs: Properties) -> str:
    where = f"{inputs['name']} --namespace {inputs['namespace']}"
    if _INTERRUPTED in error:
        return f"{error}\nafter a Helm that was killed: helm rollback {where}, or helm uninstall {where}; then repeat"
    if _IN_USE in error:
        return f"{error}\nto make it anew: helm uninstall {where}; to take it over as it is: pulumi import"
    return error


def _state(inputs: Properties, found: dict[str, Any]) -> Properties:
    status = {key: found[key] for key in ("name", "namespace", "revision", "status", "chart", "version", "appVersion")}
    return {
        **inputs,
        "version": found["version"],
        "resourceNames": _resource_names(found["manifest"]),
        "status": status,
    }


def _resource_names(manifest: str) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for document in yaml.safe_load_all(manifest):
        if document:
            group, _, _ = document["apiVersion"].rpartition("/")
            kind = f"{document['kind']}.{group}" if group else document["kind"]
            metadata = document["metadata"]
            name = f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]
            names.setdefault(f"{kind}/{document['apiVersion']}", []).append(name)
    return {kind: sorted(found) for kind, found in sorted(names.items())}
