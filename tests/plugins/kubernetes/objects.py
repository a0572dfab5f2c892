"""Kubernetes objects as Pulumi resources: what Check, Create, Read, Update and Delete do for any kind."""

import threading
from collections.abc import Callable
from typing import Any

from tests.plugins.differences import Difference, changes_between
from tests.plugins.kubernetes.cluster import ApiError, Cluster, Manifest, Reference, Unreachable
from tests.plugins.kubernetes.discovery import NoSuchKind
from tests.plugins.kubernetes.live import all_inputs, live_inputs
from tests.plugins.kubernetes.readiness import Hopeless, missing
from tests.plugins.kubernetes.replacement import replacing
from tests.plugins.kubernetes.waiting import NotReady, StillThere, wait_until_gone, wait_until_ready
from tests.plugins.provider import Checked, Live, Refused, Resource, Unfinished, unique_name
from tests.plugins.values import Properties, contains_unknown

_AUTONAMED = "pulumi.com/autonamed"
# Which fields are ours is kept by the server under a name, and the name in the state.
_MANAGER = "__fieldManager"
# For a namespace or CRD of the same update that is made, and not yet served.
_RETRIES, _FIRST_RETRY_S = 5, 0.5
_FORBIDDEN, _NOT_FOUND, _CONFLICT = 403, 404, 409
_NOT_KNOWN_BEFORE = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")


class Objects:
    def __init__(self, cluster: Cluster, *, namespace: str | None, upsert: bool, force: bool) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._upsert = upsert
        self._force = force
        self.cancelled = threading.Event()

    def check(self, resource: Resource, old: Properties, new: Properties, seed: bytes) -> Checked:
        metadata = {**new.get("metadata", {})}
        if "generateName" in metadata:
            raise Refused("the `.metadata.generateName` field is not supported in Server-Side Apply mode")
        if "name" not in metadata:
            former = old.get("metadata", {})
            kept = former.get("name") if _AUTONAMED in former.get("annotations", {}) else None
            metadata["name"] = kept or unique_name(resource.name, seed)
            metadata["annotations"] = {**metadata.get("annotations", {}), _AUTONAMED: "true"}
        if self._namespace and "namespace" not in metadata and self._may_be_namespaced(new):
            metadata["namespace"] = self._namespace
        return Checked(inputs={**new, "metadata": metadata})

    def diff(self, old: Properties, new: Properties) -> Difference:
        changes = changes_between(old, new)
        replaced = replacing(changes, new["apiVersion"], new["kind"])
        before, after = old["metadata"], new["metadata"]
        same_place = all(before.get(part) == after.get(part) for part in ("name", "namespace"))
        return Difference(
            changes=changes,
            replacing=replaced,
            delete_first=bool(replaced) and same_place and _AUTONAMED not in after.get("annotations", {}),
        )

    def create(self, resource: Resource, inputs: Properties) -> Live:
        if resource.preview:
            return self._previewed(inputs, lambda: self._make(inputs, manager="preview", dry_run=True))
        manager = unique_name("pulumi-kubernetes", resource.urn.encode())
        made = self._retried(lambda: self._make(inputs, manager=manager), f"{Reference.of(inputs)} was not created")
        return self._awaited(resource, inputs, made, manager)

    def read(self, resource: Resource, resource_id: str, inputs: Properties, state: Properties) -> Live | None:
        reference = _reference(resource, resource_id, inputs or state)
        try:
            live = self._cluster.get(reference)
            if live is None:
                return None
            if not inputs:  # an import
                return _live(live, all_inputs(live), manager=None)
            found = _live(live, live_inputs(inputs, live), state.get(_MANAGER))
            lacks = missing(live, self._cluster)
        except NoSuchKind:  # its CRD is gone, and with it every object of the kind
            return None
        except Unreachable as error:
            raise Refused(
                f"{reference} cannot be read, as the cluster cannot be reached: {error}\nif the cluster is no more, "
                "remove the resource from the state: pulumi state delete"
            ) from None
        except ApiError as error:
            raise Refused(f"{reference} cannot be read: {error}") from None
        except Hopeless as reason:
            lacks = str(reason)
        if lacks is not None:
            raise Unfinished(
                f"{reference} is not ready: {lacks}",
                resource_id=found.resource_id,
                state=found.state,
                inputs=found.inputs,
            )
        return found

    def update(self, resource: Resource, state: Properties, inputs: Properties) -> Live:
        manager = state.get(_MANAGER) or unique_name("pulumi-kubernetes", resource.urn.encode())
        if resource.preview:
            return self._previewed(inputs, lambda: self._change(inputs, manager, dry_run=True))
        changed = self._retried(lambda: self._change(inputs, manager), f"{Reference.of(inputs)} was not updated")
        return self._awaited(resource, inputs, changed, manager)

    def delete(self, resource: Resource, resource_id: str, inputs: Properties, state: Properties) -> None:
        reference = _reference(resource, resource_id, inputs or state)
        annotations = (inputs or state).get("metadata", {}).get("annotations", {})
        propagation = annotations.get("pulumi.com/deletionPropagationPolicy", "foreground").capitalize()
        try:
            live = self._cluster.get(reference)
            if live is not None:
                self._cluster.delete(reference, propagation)
                wait_until_gone(self._cluster, live, resource.timeout_s, self.cancelled)
        except NoSuchKind:
            return
        except (ApiError, Unreachable, StillThere) as error:
            raise Refused(f"{reference} was not deleted: {error}") from None

    def _may_be_namespaced(self, manifest: Manifest) -> bool:
        try:
            return self._cluster.is_namespaced(manifest["apiVersion"], manifest["kind"])
        except (NoSuchKind, Unreachable):  # a kind whose CRD is not there yet: most are
            return True

    def _make(self, inputs: Manifest, *, manager: str, dry_run: bool = False) -> Manifest:
        # As the real provider, which does not take over what it did not make (pulumi-kubernetes#4278).
        reference = Reference.of(inputs)
        if not self._upsert and self._cluster.get(reference) is not None:
            raise AlreadyExists(
                f"{reference} already exists\nto take it over as it is: "
                "PULUMI_K8S_UPSERT_EXISTING_OBJECTS=true pulumi up (or `pulumi import`)"
            )
        # No state is older than a preview's create: a conflict there is with the object that will be replaced.
        return self._cluster.apply(inputs, manager=manager, force=dry_run or self._forced(inputs), dry_run=dry_run)

    def _change(self, inputs: Manifest, manager: str, *, dry_run: bool = False) -> Manifest:
        if self._cluster.get(Reference.of(inputs)) is None:
            raise Refused(f"{Reference.of(inputs)} is gone; `pulumi refresh` takes it out of the state")
        return self._cluster.apply(inputs, manager=manager, force=self._forced(inputs), dry_run=dry_run)

    def _forced(self, inputs: Manifest) -> bool:
        return self._force or inputs["metadata"].get("annotations", {}).get("pulumi.com/patchForce") == "true"

    def _previewed(self, inputs: Manifest, dry_run: Callable[[], Manifest]) -> Live:
        """What the server would make of it; where that cannot be asked before the update, the inputs."""
        unasked = Live(resource_id="", state=inputs, inputs=inputs)
        if contains_unknown(inputs) or self._cluster.problem() is not None:
            return unasked
        try:
            result = dry_run()
        except (NoSuchKind, AlreadyExists):  # a CRD of the same update; an object that will be deleted first
            return unasked
        except ApiError as error:
            if error.status in (_NOT_FOUND, _FORBIDDEN):  # a namespace of the same update; no right to try
                return unasked
            raise Refused(f"{Reference.of(inputs)} would be refused: {_mended(error)}") from None
        metadata = {key: value for key, value in result["metadata"].items() if key not in _NOT_KNOWN_BEFORE}
        expected = {key: value for key, value in result.items() if key != "status"}
        return Live(resource_id="", state={**expected, "metadata": metadata}, inputs=inputs)

    def _retried(self, request: Callable[[], Manifest], failure: str) -> Manifest:
        for attempt in range(_RETRIES + 1):
            try:
                return request()
            except (ApiError, NoSuchKind) as error:
                transient = isinstance(error, NoSuchKind) or error.status == _NOT_FOUND
                if not transient or attempt == _RETRIES or self.cancelled.is_set():
                    raise Refused(f"{failure}: {_mended(error)}") from None
                self.cancelled.wait(_FIRST_RETRY_S * 2**attempt)
            except (AlreadyExists, Unreachable) as error:
                raise Refused(f"{failure}: {error}") from None
        raise AssertionError("the last attempt returns or raises")

    def _awaited(self, resource: Resource, inputs: Manifest, live: Manifest, manager: str) -> Live:
        try:
            ready = wait_until_ready(self._cluster, live, resource.timeout_s, self.cancelled)
        except NotReady as error:
            made = _live(error.live, inputs, manager)
            raise Unfinished(str(error), resource_id=made.resource_id, state=made.state, inputs=made.inputs) from None
        return _live(ready, inputs, manager)


def _mended(error: ApiError | NoSuchKind) -> str:
    if isinstance(error, ApiError) and error.status == _CONFLICT:
        return f"{error}\nto overwrite what the others set: PULUMI_K8S_ENABLE_PATCH_FORCE=true pulumi up"
    return str(error)


class AlreadyExists(Refused):
    """An object of the same name that is in no state of ours."""


def _live(live: Manifest, inputs: Manifest, manager: str | None) -> Live:
    metadata = {key: value for key, value in live["metadata"].items() if key != "managedFields"}
    state: dict[str, Any] = {**live, "metadata": metadata}
    if manager:
        state[_MANAGER] = manager
    return Live(resource_id=Reference.of(live).id, state=state, inputs=inputs)


def _reference(resource: Resource, resource_id: str, known: Properties) -> Reference:
    """From the id, and the type's token where an import knows nothing else: kubernetes:apps/v1:Deployment."""
    _, group_version, kind = resource.type.split(":")
    namespace, _, name = resource_id.rpartition("/")
    return Reference(
        api_version=known.get("apiVersion", group_version.removeprefix("core/")),
        kind=known.get("kind", kind),
        namespace=namespace or None,
        name=name,
    )
