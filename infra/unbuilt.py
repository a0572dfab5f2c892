"""What a platform's stack file can say and nothing builds yet, with what follows for whoever says it."""

NOT_YET_BUILT: dict[str, str] = {
    "operators.trainer_v2.enabled": "Kubeflow Trainer v2 and JobSet are not installed; no launcher makes TrainJobs",
    "operators.etcd.enabled": "no etcd is installed; rendezvous needs a master's address",
    "tracking.mlflow.enabled": "no MLflow server is installed; runs keep metrics.jsonl alone",
    "monitoring.prometheus": "no Prometheus is installed",
    "monitoring.dcgm": "no DCGM exporter is installed, so GPUs report no metrics",
    "monitoring.dashboards": "no dashboards are installed",
}
