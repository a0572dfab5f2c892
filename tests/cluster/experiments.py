"""Experiments as the tests run them: their stack, their pods, and what they left on the shared volume."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.kube import get, kubectl, logs, phases, pods, until
from tests.cluster.pulumi_cli import Checkout

NAMESPACE = "training"
_JOB_KINDS = (
    "pytorchjobs.kubeflow.org",
    "tfjobs.kubeflow.org",
    "xgboostjobs.kubeflow.org",
    "paddlejobs.kubeflow.org",
    "jobs.batch",
    "jobs.batch.volcano.sh",
    "mpijobs.kubeflow.org",
    "trainjobs.trainer.kubeflow.org",
)


@contextmanager
def running(checkout: Checkout, stack: str, *settings: str) -> Iterator[str]:
    """The run of an experiment that starts from nothing, and is destroyed at the end.

    `settings` are `key=value` of the experiment, as a user would edit them in the stack file.
    """
    shutil.rmtree(volume() / "ckpt" / stack, ignore_errors=True)  # a run goes on from its predecessor's checkpoint
    checkout.select(stack)
    for setting in settings:
        key, _, value = setting.partition("=")
        # By itself, Pulumi tells whole numbers and true from text, and takes 0.5 for text.
        typed = ["--type", "float"] if "." in value and value.replace(".", "").isdigit() else []
        where = f"trainyard:experiment.{key}"
        checkout.pulumi("config", "set", "--path", where, value, *typed, "--stack", stack)
    try:
        checkout.up(stack)
        yield checkout.outputs(stack)["run"]
    finally:
        checkout.destroy(stack)
        checkout.restore(stack)


def use_command(checkout: Checkout, stack: str, command: list[str]) -> None:
    """As a user would edit the stack file; the flags of the program that it had go with it."""
    path = checkout.folder / f"Pulumi.{stack}.yaml"
    body = yaml.safe_load(path.read_text())
    experiment = body["config"]["trainyard:experiment"]
    experiment["program"] = {"command": command}
    del experiment["args"]
    path.write_text(yaml.safe_dump(body))


def until_succeeded(run: str, *, within_s: float = 300) -> None:
    def succeeded() -> bool:
        conditions = _conditions(run)
        assert not conditions & {"Failed", "Terminated"}, f"{run} failed:\n{_story(run)}"
        return bool(conditions & {"Succeeded", "Complete", "Completed"})

    until(succeeded, within_s=within_s, what=lambda: _story(run))


def until_running(run: str, count: int, *, within_s: float = 120) -> None:
    until(lambda: phases(run) == ["Running"] * count, within_s=within_s, what=lambda: _story(run))


def until_unschedulable(run: str, *, within_s: float = 60) -> None:
    """Waits until Volcano has looked at the gang and said that it does not fit."""

    def said() -> bool:
        conditions = [condition for group in gangs(run) for condition in group.get("status", {}).get("conditions", [])]
        return any(condition["type"] == "Unschedulable" for condition in conditions)

    until(said, within_s=within_s, what=lambda: get("podgroups", "-n", NAMESPACE))


def gangs(run: str) -> list[dict[str, Any]]:
    """The run's PodGroup, if it has one now. Volcano adds its own Job's uid to the name."""
    return [group for group in get("podgroups", "-n", NAMESPACE) if group["metadata"]["name"].startswith(run)]


def metrics(checkout: Checkout, stack: str, run: str) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl that the run has written so far."""
    path = volume() / "ckpt" / stack / run / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def volume() -> Path:
    """The shared volume of the team's namespace, as a folder of this machine."""
    (claim,) = get("pvc", "-n", NAMESPACE, "distributed-training-shared")
    (bound,) = get("pv", claim["spec"]["volumeName"])
    return Path(bound["spec"]["hostPath"]["path"])


def environment(pod: str) -> dict[str, str]:
    """The environment of a pod's first process, read inside the pod."""
    text = kubectl("exec", pod, "-n", NAMESPACE, "--", "cat", "/proc/1/environ")
    return dict(line.split("=", 1) for line in text.split("\0") if line)


def _conditions(run: str) -> set[str]:
    """What is true of the run's job; of a Volcano Job, its phase."""
    statuses = [job.get("status", {}) for kind in _JOB_KINDS for job in get(kind, "-n", NAMESPACE, run)]
    conditions = [condition for status in statuses for condition in status.get("conditions", [])]
    phases = {status["state"]["phase"] for status in statuses if "state" in status}
    return phases | {condition["type"] for condition in conditions if condition["status"] == "True"}


def _story(run: str) -> str:
    """What a person would look at when a run does not do what it should."""
    told = [f"{pod['metadata']['name']}: {logs(pod['metadata']['name'], NAMESPACE, '--tail=20')}" for pod in pods(run)]
    events = kubectl("get", "events", "-n", NAMESPACE, "--sort-by=.lastTimestamp", check=False).splitlines()
    return "\n".join([*told, *(line for line in events if run in line)][-60:])
