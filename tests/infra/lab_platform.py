"""A platform with one of everything that the Kubernetes half builds."""

from typing import Any

from infra.config.platform import EksPlatform, ExistingPlatform

SHARED: dict[str, Any] = {
    "storage": {
        "efs": [{"name": "home", "size_gib": 50}],
        "fsx": [{"name": "scratch", "capacity_gib": 1200}],
    },
    "images": {"pull_secret": {"name": "hub", "username": "trainyard", "password": {"secret": "dockerhub"}}},
    "operators": {
        "volcano": {"queues": [{"name": "research"}]},
        "training": {"schemes": ["pytorchjob"]},
        "mpi": {},
        "etcd": {"enabled": True},
    },
    "priorities": [{"name": "low", "value": 1}, {"name": "high", "value": 2, "preempts": True}],
    "teams": [
        {"name": "vision", "namespace": "research", "quota": {"requests.nvidia.com/gpu": 16, "pods": 100}},
        {"name": "speech", "namespace": "research"},
        {"name": "product", "namespace": "product"},
    ],
}


def on_eks(**changes: Any) -> EksPlatform:
    groups = [
        {"name": "system", "instance_type": "m5.xlarge", "max": 2},
        {"name": "a100", "instance_type": "p4d.24xlarge", "max": 2, "efa": True, "taints": [{"key": "team"}]},
        {"name": "trn1", "instance_type": "trn1.32xlarge", "max": 2, "efa": True},
    ]
    body = {"target": "eks", "network": {"zones": ["us-east-1a", "us-east-1b"]}, "node_groups": groups, **SHARED}
    return EksPlatform.model_validate({**body, **changes})


def on_existing(**changes: Any) -> ExistingPlatform:
    body = {"target": "existing", "cluster": {"context": "kind"}, **SHARED}
    return ExistingPlatform.model_validate({**body, **changes})
