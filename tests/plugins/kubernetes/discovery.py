"""Which kinds a cluster serves, asked for one group version at a time.

The client's own discoverers read every group at once and share a cache file between processes; several requests at once
then meet a cache that is half written.
"""

import threading
import time
from typing import Any

from kubernetes.dynamic.exceptions import NotFoundError
from kubernetes.dynamic.resource import Resource

from tests.plugins.provider import Refused

# A kind that was missing may come with the CRD of the same update; those who wait for it share one question.
_ASK_AGAIN_S = 1.0
# (connect, read): an address that swallows packets must not hold up a preview for minutes.
REQUEST_TIMEOUT_S = (5.0, 60.0)


class NoSuchKind(Refused):
    """The cluster does not serve the kind, at least not yet."""


class Discovery:
    """Made by DynamicClient, which hands itself over."""

    def __init__(self, client: Any, cache_file: str | None) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._served: dict[str, dict[str, Resource]] = {}
        self._asked_at: dict[str, float] = {}

    def get(self, *, api_version: str, kind: str) -> Resource:
        found = self._served.get(api_version, {}).get(kind)
        if found is not None:
            return found
        with self._lock:
            if time.monotonic() - self._asked_at.get(api_version, -_ASK_AGAIN_S) >= _ASK_AGAIN_S:
                self._served[api_version] = self._ask(api_version)
                self._asked_at[api_version] = time.monotonic()
            found = self._served[api_version].get(kind)
        if found is None:
            raise NoSuchKind(f"the cluster has no kind {kind} in {api_version}")
        return found

    def _ask(self, api_version: str) -> dict[str, Resource]:
        group, _, version = api_version.rpartition("/")
        prefix = "apis" if group else "api"
        try:
            answer = self._client.request(
                "get", f"/{prefix}/{api_version}", _request_timeout=REQUEST_TIMEOUT_S
            ).to_dict()
        except NotFoundError:
            return {}
        make: Any = Resource  # the client has no types
        return {
            entry["kind"]: make(
                prefix=prefix,
                group=group,
                api_version=version,
                kind=entry["kind"],
                name=entry["name"],
                namespaced=entry["namespaced"],
                verbs=entry["verbs"],
                client=self._client,
            )
            for entry in answer["resources"]
            if "/" not in entry["name"]  # a subresource
        }
