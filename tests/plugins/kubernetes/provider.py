"""The kubernetes package: sorts requests by what they are about."""

import os
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.provider.provider import ConstructResult

from tests.plugins.differences import Difference, below, changes_between
from tests.plugins.kubernetes import groups, release
from tests.plugins.kubernetes.cluster import Cluster
from tests.plugins.kubernetes.groups import construct_group
from tests.plugins.kubernetes.kubeconfig import kubeconfig_of
from tests.plugins.kubernetes.objects import Objects
from tests.plugins.kubernetes.release import Releases
from tests.plugins.provider import Checked, Live, Provider, Resource
from tests.plugins.values import Path, Properties


class KubernetesProvider(Provider):
    package = "kubernetes"
    version = "4.34.2"

    def configure(self, config: Properties) -> None:
        cluster = Cluster(
            kubeconfig_of(config.get("kubeconfig"), config.get("context")), config.get("namespace", "default")
        )
        self._cluster = cluster
        self._namespace: str = config.get("namespace", "default")
        self._objects = Objects(
            cluster,
            namespace=config.get("namespace"),
            upsert=_switched_on(config, "upsertExistingObjects", "PULUMI_K8S_UPSERT_EXISTING_OBJECTS"),
            force=_switched_on(config, "enablePatchForce", "PULUMI_K8S_ENABLE_PATCH_FORCE"),
        )
        self._releases = Releases(cluster, self._namespace)
        problem = cluster.problem()
        if problem is not None:
            self.warn(
                "", f"the configured Kubernetes cluster cannot be reached, so nothing is compared with it: {problem}"
            )

    def diff_config(self, old: Properties, new: Properties) -> Difference:
        # Without an identifier the real provider guesses from the kubeconfig; our program always gives one.
        changes = changes_between(old, new)
        return Difference(changes=changes, replacing=below(changes, [("clusterIdentifier",)]))

    def check(self, resource: Resource, old: Properties, new: Properties, seed: bytes) -> Checked:
        if resource.type == release.TYPE:
            return self._releases.check(resource, old, new, seed)
        return self._objects.check(resource, old, new, seed)

    def diff(self, resource: Resource, old: Properties, new: Properties) -> Difference:
        if resource.type == release.TYPE:
            return self._releases.diff(old, new)
        return self._objects.diff(old, new)

    def create(self, resource: Resource, inputs: Properties) -> Live:
        if resource.type == release.TYPE:
            return self._releases.create(resource, inputs)
        return self._objects.create(resource, inputs)

    def read(self, resource: Resource, resource_id: str, inputs: Properties, state: Properties) -> Live | None:
        if resource.type == release.TYPE:
            return self._releases.read(resource_id, inputs)
        return self._objects.read(resource, resource_id, inputs, state)

    def update(self, resource: Resource, state: Properties, inputs: Properties) -> Live:
        if resource.type == release.TYPE:
            return self._releases.update(resource, inputs)
        return self._objects.update(resource, state, inputs)

    def delete(self, resource: Resource, resource_id: str, inputs: Properties, state: Properties) -> None:
        if resource.type == release.TYPE:
            return self._releases.delete(resource_id, inputs)
        return self._objects.delete(resource, resource_id, inputs, state)

    def construct(
        self, name: str, resource_type: str, inputs: Mapping[str, Any], options: pulumi.ResourceOptions
    ) -> ConstructResult:
        if resource_type != groups.TYPE:
            return super().construct(name, resource_type, inputs, options)
        return construct_group(
            self._cluster, name, inputs, options, version=self.version, default_namespace=self._namespace
        )

    def always_secret(self, resource: Resource) -> list[Path]:
        return [("data",), ("stringData",)] if resource.type == "kubernetes:core/v1:Secret" else []

    def cancel(self) -> None:
        self._objects.cancelled.set()
        self._releases.cancel()


def _switched_on(config: Properties, key: str, variable: str) -> bool:
    # The engine hands a provider's configuration over as text.
    return str(config.get(key, os.environ.get(variable, ""))).lower() == "true"
