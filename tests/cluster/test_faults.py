"""What goes wrong around a run: the control plane is lost, the CLI is killed, the platform is not there."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.cluster.experiments import NAMESPACE, metrics, running, until_running, until_succeeded
from tests.cluster.kube import get, pods, until
from tests.cluster.pulumi_cli import Checkout

pytestmark = pytest.mark.cluster


def test_a_run_does_not_notice_that_daemons_were_killed(platform: Checkout) -> None:
    with running(platform, "mnist", "args.steps=1500") as run:
        until_running(run, 2)
        for daemon in ("kube-apiserver", "kubelet"):
            subprocess.run(["pkill", "-KILL", "--full", f"bin/{daemon} "], check=True)
        until(lambda: get("nodes"), within_s=60)
        until_succeeded(run)
        steps = [line["step"] for line in metrics(platform, "mnist", run)]
        restarts = [pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods(run)]
    assert steps == sorted(set(steps))
    assert steps[-1] == 1500
    assert set(restarts) == {0}  # the operator may have removed a worker that ended a moment after the master


def test_an_update_whose_cli_was_killed_is_finished_by_the_next(platform: Checkout) -> None:
    platform.select("mnist-indexed")
    command = ["pulumi", "up", "--yes", "--skip-preview", "--stack", "mnist-indexed", "--non-interactive"]
    update = subprocess.Popen(
        command, cwd=platform.folder, env=platform.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until(lambda: get("podgroups", "-n", NAMESPACE), within_s=60)
    update.send_signal(signal.SIGKILL)
    update.wait()
    platform.pulumi("cancel", "--yes", "--stack", "mnist-indexed")
    with running(platform, "mnist-indexed") as run:
        until_succeeded(run)
        assert len(get("jobs", "-n", NAMESPACE)) == 1


def test_an_update_before_the_platform_exists_makes_nothing(platform: Checkout, tmp_path: Path) -> None:
    elsewhere = Checkout.make(tmp_path / "checkout", tmp_path / "backend")
    elsewhere.select("mnist")
    refused = elsewhere.pulumi("up", "--yes", "--skip-preview", "--stack", "mnist", check=False)
    assert refused.returncode != 0
    assert "first run: pulumi up -s local" in refused.stdout
    assert "Traceback" not in refused.stdout + refused.stderr
    assert not get("pytorchjobs", "-n", NAMESPACE)
