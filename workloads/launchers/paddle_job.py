"""`paddle-job`: a PaddleJob of the Kubeflow Training Operator v1, in collective mode: workers, and no master.

The operator tells each pod where worker 0 is and how many there are, but not which one it is, for
`paddle.distributed.launch` numbers the pods as they come. Here a pod's rank is its index. The job has succeeded when
all workers have.
"""

from typing import Any

from workloads.launchers.kind import LauncherKind
from workloads.launchers.kubeflow import replica, run_policy, solo_command
from workloads.pod import Manifest, metadata
from workloads.resolve import Run

# The operator looks for this container's port and exit code.
_CONTAINER = "paddle"
_INDEX_LABEL = "training.kubeflow.org/replica-index"


def manifests(run: Run, name: str) -> list[Manifest]:
    workers = replica(
        run, name, run.experiment.nodes, container=_CONTAINER, command=solo_command(run), variables=[_rank()]
    )
    return [
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PaddleJob",
            "metadata": metadata(run, name),
            "spec": {"runPolicy": run_policy(run), "paddleReplicaSpecs": {"Worker": workers}},
        }
    ]


def _rank() -> dict[str, Any]:
    """Read by `paddle.distributed.launch` as well, in a command of the user's own."""
    return {"name": "PADDLE_RANK", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{_INDEX_LABEL}']"}}}


def local_variables(ports: list[int]) -> list[dict[str, str]]:
    count = len(ports)
    return [
        {"PADDLE_RANK": str(rank), "PADDLE_NNODES": str(count), "PADDLE_MASTER": f"localhost:{ports[0]}"}
        for rank in range(count)
    ]


LAUNCHER = LauncherKind(
    name="paddle-job",
    manifests=manifests,
    operator="training",
    scheme="paddlejob",
    starts="itself",
    local_variables=local_variables,
    rendezvous="static: worker 0's Service name; the programs wait there for each other",
    injects="PADDLE_MASTER and PADDLE_NNODES, by the operator; PADDLE_RANK is set here, from a label of the operator's",
    # It asks a FakeWorkQueue for the number of starts, which answers 0.
    restarts="the operator, pod by pod, on exit codes of 128 and above, with which those who lose a peer end as well; "
    "it counts no starts: of `restarts`, only 0 has an effect",
    gang="PodGroup made by the operator, all pods",
    choose_when="Paddle programs, `paddle.distributed.launch` among them; an image with it, such as `paddle`",
)
