"""What a platform's stack file can say and nothing builds yet: dotted key → what follows for whoever says it."""

UNBUILT: dict[str, str] = {
    "tracking.mlflow.enabled": "no MLflow server is installed; runs keep metrics.jsonl alone",
    "monitoring.prometheus": "no Prometheus is installed",
    "monitoring.dcgm": "no DCGM exporter is installed, so GPUs report no metrics",
    "monitoring.dashboards": "no dashboards are installed",
}
UNBUILT_ON_EKS: dict[str, str] = {
    "node_pools": "no Karpenter runs yet, so that no node of a pool ever comes",
    "node_groups": "no autoscaler runs yet: a group keeps its `min` until it is scaled by hand, with "
    "`aws eks update-nodegroup-config`",
}
