"""Requests to one API server: apply, get, list, delete."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import urllib3.exceptions
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError, NotFoundError

from tests.plugins.kubernetes.discovery import REQUEST_TIMEOUT_S, Discovery
from tests.plugins.kubernetes.kubeconfig import Kubeconfig, Unusable
from tests.plugins.provider import Refused

Manifest = dict[str, Any]


class ApiError(Refused):
    """The API server's refusal, in its own words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Unreachable(Refused):
    """There is no answer, or no way to ask."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Which object."""

    api_version: str
    kind: str
    namespace: str | None
    name: str

    @classmethod
    def of(cls, manifest: Manifest) -> "Reference":
        metadata = manifest["metadata"]
        return cls(
            api_version=manifest["apiVersion"],
            kind=manifest["kind"],
            namespace=metadata.get("namespace"),
            name=metadata["name"],
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"

    @property
    def id(self) -> str:
        """The resource's id in Pulumi's state."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Cluster:
    """Safe to use from several threads; connects when it is first needed."""

    def __init__(self, kubeconfig: Kubeconfig, default_namespace: str) -> None:
        self.kubeconfig = kubeconfig
        self._default_namespace = default_namespace
        self._lock = threading.Lock()
        self._connected: Any = None  # the client has no types
        self._problem: str | None = None

    def problem(self) -> str | None:
        """Why the cluster cannot be reached; asked once, as an update either has a cluster or has none."""
        with self._lock:
            if self._connected is None and self._problem is None:
                try:
                    connect: Any = DynamicClient
                    connected = connect(self.kubeconfig.api_client(), discoverer=Discovery)
                    with _api_errors():
                        connected.resources.get(api_version="v1", kind="Namespace")
                    self._connected = connected
                except (Unusable, Unreachable, ApiError) as error:
                    self._problem = str(error)
        return self._problem

    def is_namespaced(self, api_version: str, kind: str) -> bool:
        return bool(self._resource(api_version, kind).namespaced)

    def apply(self, manifest: Manifest, *, manager: str, force: bool, dry_run: bool = False) -> Manifest:
        """Server-side apply; a field that the schema does not know is an error."""
        where = self._where(Reference.of(manifest))
        options = {"dry_run": "All"} if dry_run else {}
        with _api_errors():
            applied = self._client.server_side_apply(
                body=manifest,
                field_manager=manager,
                force_conflicts=force,
                query_params=[("fieldValidation", "Strict")],
                _request_timeout=REQUEST_TIMEOUT_S,
                **where,
                **options,
            )
        return _plain(applied)

    def get(self, reference: Reference) -> Manifest | None:
        where = self._where(reference)
        with _api_errors():
            try:
                return _plain(self._client.get(_request_timeout=REQUEST_TIMEOUT_S, **where))
            except NotFoundError:
                return None

    def list(self, api_version: str, kind: str, **selection: str | None) -> list[Manifest]:
        resource = self._resource(api_version, kind)
        with _api_errors():
            found = self._client.get(resource, _request_timeout=REQUEST_TIMEOUT_S, **selection)
        items: list[Manifest] = _plain(found)["items"]
        return items

    def delete(self, reference: Reference, propagation: str) -> None:
        where = self._where(reference)
        with _api_errors():
            try:
                self._client.delete(
                    body={"propagationPolicy": propagation}, _request_timeout=REQUEST_TIMEOUT_S, **where
                )
            except NotFoundError:
                return

    @property
    def _client(self) -> Any:
        problem = self.problem()
        if problem is not None:
            raise Unreachable(problem)
        return self._connected

    def _resource(self, api_version: str, kind: str) -> Any:
        with _api_errors():
            return self._client.resources.get(api_version=api_version, kind=kind)

    def _where(self, reference: Reference) -> dict[str, Any]:
        resource = self._resource(reference.api_version, reference.kind)
        namespace = (reference.namespace or self._default_namespace) if resource.namespaced else None
        return {"resource": resource, "name": reference.name, "namespace": namespace}


@contextmanager
def _api_errors() -> Iterator[None]:
    """The client's exceptions as ours."""
    try:
        yield
    except DynamicApiError as error:
        raise ApiError(error.status, _message(error)) from None
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise Unreachable(str(error)) from None


def _message(error: DynamicApiError) -> str:
    try:
        return str(json.loads(error.body or "")["message"])
    except (ValueError, KeyError):  # a proxy's page, or no body
        return f"{error.status} {error.reason}"


def _plain(answer: Any) -> Manifest:
    manifest: Manifest = answer.to_dict()
    return manifest
