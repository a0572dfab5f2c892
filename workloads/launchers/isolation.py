"""What every run has around its pods, whatever its launcher: an identity of its own, and a network of its own.

A team's namespace lets nothing in and little out (`infra/kubernetes/network_policies.py`), and a network policy cannot
say "pods with the same label as each other". So each run brings the policy that lets its pods talk.
"""

from workloads.pod import Manifest, labels, metadata, service_account_name
from workloads.resolve import Run

# Of `labels`, those that an edit of the experiment changes: the account stays, and so must they.
_OF_ONE_RUN = ("app.kubernetes.io/instance", "trainyard.dev/launcher")


def isolation(run: Run, name: str) -> list[Manifest]:
    """The account and the policy, which must be there before the first pod."""
    return [_service_account(run, name), _peers_policy(run, name)]


def _service_account(run: Run, name: str) -> Manifest:
    """The experiment's, not the run's: whoever gives it rights in AWS names it once."""
    kept = {key: value for key, value in labels(run, name).items() if key not in _OF_ONE_RUN}
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": service_account_name(run), "namespace": run.team.namespace, "labels": kept},
        # Of the Kubernetes API no run needs anything.
        "automountServiceAccountToken": False,
    }


def _peers_policy(run: Run, name: str) -> Manifest:
    """All ports: gloo, NCCL and MPI choose theirs as they go."""
    peers = {"podSelector": {"matchLabels": {"app.kubernetes.io/instance": name}}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        # Not the run's bare name: Volcano's svc plugin removes the policy that is named as its Job.
        "metadata": {**metadata(run, name), "name": f"{name}-peers"},
        "spec": {
            **peers,
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [peers]}],
            "egress": [{"to": [peers]}],
        },
    }
