"""DeepSpeed by mpirun, from a stack file that is made for EKS, on the cluster's two small pods."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
import yaml

from tests.cluster.experiments import metrics, running, until_running, until_succeeded, volume
from tests.cluster.images import buildah_environment, certificate_options
from tests.cluster.kube import kubectl, pods, until
from tests.cluster.pulumi_cli import Checkout

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

DEEPSPEED = [
    *("platform=local", "node_group=cpu", "fabric=auto", "volumes[0].name=distributed-training-shared"),
    *("precision=fp32", "batch.global=8", "batch.micro=2", "args.steps=60", "checkpoint.every_steps=10"),
    *("model.layers=2", "model.hidden=64", "model.heads=4", "model.kv_heads=2", "model.vocab=256", "model.sequence=64"),
]


@pytest.fixture
def holding(platform: Checkout, request: pytest.FixtureRequest) -> Iterator[Checkout]:
    """The platform with one image more, added to its file and built as a user would."""
    path = platform.folder / "Pulumi.local.yaml"
    stack = yaml.safe_load(path.read_text())
    stack["config"]["trainyard:platform"]["images"]["build"].append(request.param)
    path.write_text(yaml.safe_dump(stack))
    build = [sys.executable, "-m", "workloads", "build", request.param, "--platform", "local"]
    subprocess.run([*build, "--", *certificate_options()], cwd=platform.folder, env=buildah_environment(), check=True)
    yield platform
    platform.restore("local")


@pytest.mark.parametrize("holding", ["deepspeed"], indirect=True)
@pytest.mark.parametrize("sharding", ["zero1", "zero3"])
def test_deepspeed_trains_over_two_pods(holding: Checkout, sharding: str) -> None:
    with running(holding, "deepspeed", *DEEPSPEED, f"parallelism.sharding={sharding}") as run:
        until_succeeded(run, within_s=400)
        told = metrics(holding, "deepspeed", run)
        assert told[-1]["step"] == 60
        assert told[-1]["loss"] < told[0]["loss"] - 0.5
        saved = volume() / "ckpt/deepspeed/step-00000060" / sharding
        assert {path.name for path in saved.glob("*_optim_states.pt")} == {
            f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in (0, 1)
        }


@pytest.mark.parametrize("holding", ["deepspeed"], indirect=True)
def test_a_lost_worker_costs_deepspeed_the_steps_since_its_last_checkpoint(holding: Checkout) -> None:
    with running(holding, "deepspeed", *DEEPSPEED, "args.steps=400") as run:
        until_running(run, 3)
        until(lambda: [line for line in metrics(holding, "deepspeed", run) if line["checkpoint"]], within_s=200)
        (worker, *_) = [pod["metadata"]["name"] for pod in pods(run) if "worker-1" in pod["metadata"]["name"]]
        kubectl("delete", "pod", worker, "-n", "training", "--grace-period=0", "--force")
        until_succeeded(run, within_s=500)
        steps = [line["step"] for line in metrics(holding, "deepspeed", run)]
    assert steps == sorted(set(steps)), "a step was logged twice"
    assert steps[-1] == 400
