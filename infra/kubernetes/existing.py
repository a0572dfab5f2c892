"""A cluster that is there already: how Pulumi reaches it."""

import pulumi
import pulumi_kubernetes as kubernetes

from infra.config.platform import ExistingCluster
from infra.kubernetes.secrets import secret_value


def existing_provider(stack_name: str, cluster: ExistingCluster) -> kubernetes.Provider:
    """The provider of a named context, or of a kubeconfig that is a secret of the stack.

    `cluster_identifier` says what makes it the same cluster: a rotated certificate or a moved endpoint must not replace
    every object in it.
    """
    if cluster.context:
        return kubernetes.Provider("cluster", context=cluster.context, cluster_identifier=cluster.context)
    return kubernetes.Provider("cluster", kubeconfig=existing_kubeconfig(cluster), cluster_identifier=stack_name)


def existing_kubeconfig(cluster: ExistingCluster) -> pulumi.Output[str] | None:
    """The kubeconfig to hand on to experiments; None where they name the context, as the platform does."""
    return secret_value(cluster.kubeconfig) if cluster.kubeconfig else None
