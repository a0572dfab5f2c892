"""Namespaces: one for each team, locked down; and those of the operators, as open as each operator needs."""

from collections.abc import Iterable, Sequence
from typing import Literal

import pulumi
import pulumi_kubernetes as kubernetes

from infra.config.platform import PullSecret, Team
from infra.kubernetes.network_policies import SERVES_EXPERIMENTS, team_policy
from infra.kubernetes.secrets import pull_secret_data

PodSecurity = Literal["privileged", "baseline", "restricted"]

# What network policies know the namespaces of experiments by.
TEAM_LABELS = {"app.kubernetes.io/managed-by": "trainyard"}


def pod_security_labels(level: PodSecurity) -> dict[str, str]:
    """Pod Security Admission: pods are refused, and whoever applies a Job that would make such pods is warned."""
    return {f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "warn", "audit")}


def operator_namespace(
    resource_name: str,
    *,
    name: str,
    level: PodSecurity,
    opts: pulumi.ResourceOptions,
    serves_experiments: bool = False,
) -> kubernetes.core.v1.Namespace:
    """`serves_experiments`: teams' pods may call what runs there."""
    labels = pod_security_labels(level) | (SERVES_EXPERIMENTS if serves_experiments else {})
    return kubernetes.core.v1.Namespace(resource_name, metadata={"name": name, "labels": labels}, opts=opts)


class TeamNamespaces(pulumi.ComponentResource):
    """Where experiments run: `restricted` namespaces closed to each other, with quotas and registry credentials."""

    namespaces: dict[str, kubernetes.core.v1.Namespace]
    """By namespace; teams may share one."""

    def __init__(
        self,
        name: str,
        *,
        teams: Sequence[Team],
        pull_secret: PullSecret | None,
        provider: kubernetes.Provider,
        after: Sequence[pulumi.Resource],
    ) -> None:
        super().__init__("trainyard:teams:TeamNamespaces", name, None, pulumi.ResourceOptions(providers=[provider]))
        self.namespaces = self._create_namespaces(name, teams, after)
        self._create_quotas(name, teams)
        self._create_policies(name)
        if pull_secret:
            self._create_pull_secrets(name, pull_secret)
        self.register_outputs({"namespaces": list(self.namespaces)})

    def _create_namespaces(
        self, name: str, teams: Iterable[Team], after: Sequence[pulumi.Resource]
    ) -> dict[str, kubernetes.core.v1.Namespace]:
        return {
            namespace: kubernetes.core.v1.Namespace(
                f"{name}-{namespace}",
                metadata={
                    "name": namespace,
                    "labels": {**pod_security_labels("restricted"), **TEAM_LABELS},
                },
                opts=pulumi.ResourceOptions(parent=self, depends_on=after),
            )
            for namespace in dict.fromkeys(team.namespace for team in teams)
        }

    def _create_quotas(self, name: str, teams: Iterable[Team]) -> None:
        for team in teams:
            if team.quota:
                kubernetes.core.v1.ResourceQuota(
                    f"{name}-{team.name}-quota",
                    metadata={"name": team.name, "namespace": team.namespace},
                    spec={"hard": {resource: str(amount) for resource, amount in team.quota.items()}},
                    opts=pulumi.ResourceOptions(parent=self, depends_on=[self.namespaces[team.namespace]]),
                )

    def _create_policies(self, name: str) -> None:
        for namespace, resource in self.namespaces.items():
            options = pulumi.ResourceOptions(parent=self, depends_on=[resource])
            team_policy(f"{name}-{namespace}-policy", namespace=namespace, opts=options)

    def _create_pull_secrets(self, name: str, pull_secret: PullSecret) -> None:
        for namespace, resource in self.namespaces.items():
            kubernetes.core.v1.Secret(
                f"{name}-{namespace}-{pull_secret.name}",
                metadata={"name": pull_secret.name, "namespace": namespace},
                type="kubernetes.io/dockerconfigjson",
                string_data=pull_secret_data(pull_secret),
                opts=pulumi.ResourceOptions(parent=self, depends_on=[resource]),
            )
