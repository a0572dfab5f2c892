"""The platform on a cluster that exists: what `pulumi up -s local` makes of it."""

import base64
from pathlib import Path

import pytest
import yaml

from tests.cluster.kube import get, kubectl
from tests.cluster.pulumi_cli import Checkout

pytestmark = pytest.mark.cluster

_SCHEMES = ("tfjob", "pytorchjob", "xgboostjob", "paddlejob")


def test_up_again_changes_nothing(platform: Checkout) -> None:
    assert platform.changes("local") == {}


def test_refresh_finds_nothing_to_change(platform: Checkout) -> None:
    platform.pulumi("refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "local")
    assert platform.changes("local") == {}


def test_up_from_another_checkout_changes_nothing(platform: Checkout, tmp_path: Path) -> None:
    other = Checkout.make(tmp_path / "another", platform.backend)
    assert other.changes("local") == {}


def test_teams_run_in_a_restricted_namespace(platform: Checkout) -> None:
    (namespace,) = get("namespace", "training")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_a_teams_namespace_is_closed_but_for_what_its_policy_lists(platform: Checkout) -> None:
    (policy,) = get("networkpolicies", "-n", "training")
    assert policy["spec"]["podSelector"] == {}
    assert sorted(policy["spec"]["policyTypes"]) == ["Egress", "Ingress"]


def test_the_claim_of_the_first_seed_is_bound(platform: Checkout) -> None:
    (claim,) = get("pvc", "-n", "training", "distributed-training-shared")
    assert claim["status"]["phase"] == "Bound"
    assert claim["spec"]["storageClassName"] == "efs-sc"
    assert claim["spec"]["resources"]["requests"]["storage"] == "200Gi"


def test_volcano_makes_pods_for_gangs_that_do_not_fit(platform: Checkout) -> None:
    (config,) = get("configmap", "-n", "volcano-system", "volcano-scheduler-configmap")
    assert "enqueue" not in config["data"]["volcano-scheduler.conf"]
    assert "proportion" in config["data"]["volcano-scheduler.conf"]


def test_every_image_comes_from_the_mirror(platform: Checkout) -> None:
    pods = get("pods", "-A")
    images = {container["image"] for pod in pods for container in pod["spec"]["containers"]}
    assert images
    assert all(image.startswith("localhost:5000/") for image in images)


@pytest.mark.parametrize(
    ("namespace", "name", "arguments"),
    [
        (
            "kubeflow",
            "training-operator",
            [
                "--gang-scheduler-name=volcano",
                *(f"--enable-scheme={s}job" for s in ("tf", "pytorch", "xgboost", "paddle")),
            ],
        ),
        (
            "mpi-operator",
            "mpi-operator",
            ["--gang-scheduling=volcano", "-alsologtostderr", "--lock-namespace=mpi-operator"],
        ),
    ],
)
def test_operators_run_with_the_arguments_of_the_first_seed(
    platform: Checkout, namespace: str, name: str, arguments: list[str]
) -> None:
    (deployment,) = get("deployment", "-n", namespace, name)
    assert deployment["status"]["readyReplicas"] == 1
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert set(arguments) <= set(container["args"])


def test_mpijob_is_the_mpi_operators_alone(platform: Checkout) -> None:
    (definition,) = get("crd", "mpijobs.kubeflow.org")
    assert [version["name"] for version in definition["spec"]["versions"]] == ["v2beta1"]


def test_a_pod_that_asks_for_privileges_is_refused(platform: Checkout) -> None:
    pod = """
apiVersion: v1
kind: Pod
metadata: {name: root, namespace: training}
spec: {containers: [{name: root, image: "localhost:5000/trainyard/pause:1", securityContext: {privileged: true}}]}
"""
    said = kubectl("apply", "--dry-run=server", "-f", "-", stdin=pod, check=False)
    assert said == ""


def test_teams_queues_and_credentials_come_from_the_stack_file(platform: Checkout) -> None:
    secret = "correct horse battery staple"
    path = platform.folder / "Pulumi.local.yaml"
    stack = yaml.safe_load(path.read_text())
    config = stack["config"]["trainyard:platform"]
    config["teams"].append({"name": "vision", "namespace": "vision", "queue": "gpu", "quota": {"pods": 3}})
    config["operators"]["volcano"]["queues"] = [{"name": "gpu", "weight": 4, "capability": {"cpu": 1}}]
    config["images"]["pull_secret"] = {
        "name": "dockerhub",
        "registry": "docker.io",
        "username": "trainyard",
        "password": {"secret": "dockerhub"},
    }
    path.write_text(yaml.safe_dump(stack))
    platform.pulumi("config", "set", "--secret", "trainyard:dockerhub", secret, "--stack", "local")
    try:
        said = platform.up("local")
        assert platform.changes("local") == {}
        (queue,) = get("queues.scheduling.volcano.sh", "gpu")
        assert (queue["spec"]["weight"], queue["spec"]["capability"]) == (4, {"cpu": "1"})
        (quota,) = get("resourcequotas", "-n", "vision")
        assert quota["spec"]["hard"] == {"pods": "3"}
        for namespace in ("training", "vision"):
            (pull_secret,) = get("secrets", "-n", namespace, "dockerhub")
            assert secret in base64.b64decode(pull_secret["data"][".dockerconfigjson"]).decode()
            assert get("pvc", "-n", namespace, "distributed-training-shared")[0]["status"]["phase"] == "Bound"
        exported = platform.pulumi("stack", "export", "--stack", "local").stdout
        assert secret not in exported + said.stdout + said.stderr
        assert base64.b64encode(secret.encode()).decode()[:16] not in exported
    finally:
        platform.restore("local")
        platform.up("local")
    assert not get("namespace", "vision")
    assert platform.changes("local") == {}
