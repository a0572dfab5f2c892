"""`xgboost-job`: an XGBoostJob of the Kubeflow Training Operator v1.

The operator gives each pod its rank and the master's address; the program of rank 0 runs XGBoost's tracker, where the
others find each other. The job has succeeded with its master.
"""

from workloads.launchers.kind import LauncherKind
from workloads.launchers.kubeflow import replica, run_policy, solo_command
from workloads.pod import Manifest, metadata
from workloads.resolve import Run

# The operator looks for this container's port and exit code.
_CONTAINER = "xgboost"


def manifests(run: Run, name: str) -> list[Manifest]:
    def pods(count: int) -> Manifest:
        return replica(run, name, count, container=_CONTAINER, command=solo_command(run))

    replicas = {"Master": pods(1)}
    if run.experiment.nodes > 1:
        replicas["Worker"] = pods(run.experiment.nodes - 1)
    return [
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "XGBoostJob",
            "metadata": metadata(run, name),
            "spec": {"runPolicy": run_policy(run), "xgbReplicaSpecs": replicas},
        }
    ]


def local_variables(ports: list[int]) -> list[dict[str, str]]:
    count = len(ports)
    return [
        {"RANK": str(rank), "WORLD_SIZE": str(count), "MASTER_ADDR": "localhost", "MASTER_PORT": str(ports[0])}
        for rank in range(count)
    ]


LAUNCHER = LauncherKind(
    name="xgboost-job",
    manifests=manifests,
    operator="training",
    scheme="xgboostjob",
    starts="itself",
    local_variables=local_variables,
    rendezvous="static: the master's Service name; the programs wait there for each other",
    injects="RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, by the operator",
    # It asks a FakeWorkQueue for the number of starts, which answers 0.
    restarts="the operator, pod by pod, on exit codes of 128 and above, with which those who lose a peer end as well; "
    "it counts no starts: of `restarts`, only 0 has an effect",
    gang="PodGroup made by the operator, all pods",
    choose_when="XGBoost over its own collective; an image with it, such as `xgboost`",
)
