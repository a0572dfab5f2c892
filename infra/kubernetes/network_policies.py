"""What the pods of a team's namespace may reach, and who may reach them: nobody, but for what is listed here.

Each run adds a policy of its own, by which its pods reach each other (`workloads/launchers/isolation.py`). Shared file
systems are mounted by the node and EFA passes the kernel by: neither is traffic that a policy sees.
"""

from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

# Labels of a namespace, whoever made it.
SERVES_EXPERIMENTS = {"trainyard.dev/serves-experiments": "true"}
"""Experiments may call what runs there: a rendezvous, a tracking server."""
WATCHES_EXPERIMENTS = {"trainyard.dev/watches-experiments": "true"}
"""What runs there may call experiments: a Prometheus that scrapes them."""

_DNS = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
# S3, STS, model hubs: by VPC endpoint or by the internet, whose addresses no policy can list.
_HTTPS = [{"protocol": "TCP", "port": 443}]
# EKS Pod Identity's agent on each node, for credentials. The instance's own (169.254.169.254) stay out of reach.
_POD_IDENTITY = {
    "to": [{"ipBlock": {"cidr": "169.254.170.23/32"}}],
    "ports": [{"protocol": "TCP", "port": 80}],
}


def team_policy_spec() -> dict[str, Any]:
    """For every pod of the namespace."""
    return {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [{"namespaceSelector": {"matchLabels": WATCHES_EXPERIMENTS}}]}],
        "egress": [
            {
                "to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}],
                "ports": _DNS,
            },
            {"ports": _HTTPS},
            _POD_IDENTITY,
            {"to": [{"namespaceSelector": {"matchLabels": SERVES_EXPERIMENTS}}]},
        ],
    }


def team_policy(
    resource_name: str, *, namespace: str, opts: pulumi.ResourceOptions
) -> kubernetes.networking.v1.NetworkPolicy:
    return kubernetes.networking.v1.NetworkPolicy(
        resource_name, metadata={"name": "experiments", "namespace": namespace}, spec=team_policy_spec(), opts=opts
    )
