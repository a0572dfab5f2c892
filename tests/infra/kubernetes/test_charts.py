"""Our own charts, rendered by Helm as the platform installs them."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.config.platform import Mirrors, TrainingOperator
from infra.kubernetes.mpi_operator import mpi_operator_values
from infra.kubernetes.trainer import jobset_values, trainer_values
from infra.kubernetes.training_operator import training_operator_values
from infra.versions import JOBSET, MPI_OPERATOR, TRAINER, TRAINING_OPERATOR
from tests.commands import needs
from tests.schemas import validate_manifest

CHARTS = Path(__file__).parents[3] / "infra" / "charts"
VERSIONS = {
    "training-operator": TRAINING_OPERATOR,
    "mpi-operator": MPI_OPERATOR,
    "jobset": JOBSET,
    "trainer": TRAINER,
}

needs_helm = needs("helm")


def values_of(chart: str, *, gang_scheduler: str, replicas: int, schemes: list[str]) -> dict[str, Any]:
    if chart == "mpi-operator":
        return mpi_operator_values(gang_scheduler=gang_scheduler, replicas=replicas, mirrors=Mirrors())
    if chart in ("jobset", "trainer"):  # neither is told of a gang scheduler: a runtime asks for its PodGroup
        values = jobset_values if chart == "jobset" else trainer_values
        return values(replicas=replicas, mirrors=Mirrors())
    operator = TrainingOperator.model_validate({"schemes": schemes})
    return training_operator_values(operator, gang_scheduler=gang_scheduler, replicas=replicas, mirrors=Mirrors())


def rendered(
    chart: str,
    *,
    gang_scheduler: str = "volcano",
    replicas: int = 2,
    schemes: tuple[str, ...] = ("pytorchjob", "tfjob"),
) -> dict[str, dict[str, Any]]:
    """The objects of a chart by kind; none of our charts has two of a kind."""
    values = values_of(chart, gang_scheduler=gang_scheduler, replicas=replicas, schemes=list(schemes))
    command = [
        "helm",
        "template",
        chart,
        str(CHARTS / chart),
        "--namespace",
        "kubeflow",
        "--include-crds",
        "--values",
        "-",
    ]
    text = subprocess.run(command, input=yaml.safe_dump(values), check=True, capture_output=True, text=True).stdout
    manifests = [manifest for manifest in yaml.safe_load_all(text) if manifest]
    kinds = {manifest["kind"]: manifest for manifest in manifests}
    assert len(kinds) == len(manifests)
    return kinds


def container(chart: str, **options: Any) -> dict[str, Any]:
    (found,) = rendered(chart, **options)["Deployment"]["spec"]["template"]["spec"]["containers"]
    return found


@needs_helm
@pytest.mark.parametrize("chart", VERSIONS)
@pytest.mark.parametrize("gang_scheduler", ["volcano", ""])
def test_a_chart_renders_objects_that_kubernetes_takes(chart: str, gang_scheduler: str) -> None:
    for manifest in rendered(chart, gang_scheduler=gang_scheduler).values():
        assert validate_manifest(manifest) == []


@needs_helm
@pytest.mark.parametrize("chart", VERSIONS)
def test_the_chart_holds_no_crds_since_helm_would_never_upgrade_them(chart: str) -> None:
    assert "CustomResourceDefinition" not in rendered(chart)


@needs_helm
@pytest.mark.parametrize("chart", VERSIONS)
def test_an_operators_pod_passes_the_restricted_level_of_its_namespace(chart: str) -> None:
    pod = rendered(chart)["Deployment"]["spec"]["template"]["spec"]
    assert_restricted(pod["securityContext"] | pod["containers"][0]["securityContext"])


@needs_helm
def test_the_init_container_of_workers_passes_the_restricted_level_of_the_teams_namespaces() -> None:
    template = rendered("training-operator")["ConfigMap"]["data"]["initContainer.yaml"]
    filled = re.sub(r"\{\{\.(\w+)\}\}", r"\1", template)
    (init,) = yaml.safe_load(filled)
    assert_restricted(init["securityContext"])
    assert set(re.findall(r"\{\{\.(\w+)\}\}", template)) == {"InitContainerImage", "MasterAddr", "MaxTries"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [init]}}
    assert validate_manifest(pod) == []


@needs_helm
def test_the_training_operator_serves_the_configured_kinds_and_never_mpi_jobs() -> None:
    objects = rendered("training-operator", schemes=("pytorchjob",))
    arguments = objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert [argument for argument in arguments if "enable-scheme" in argument] == ["--enable-scheme=pytorchjob"]
    webhooks = objects["ValidatingWebhookConfiguration"]["webhooks"]
    assert [webhook["rules"][0]["resources"] for webhook in webhooks] == [["pytorchjobs"]]
    assert "mpi" not in yaml.safe_dump(objects)


@needs_helm
def test_the_training_operator_reads_no_secrets_but_those_of_its_own_namespace() -> None:
    objects = rendered("training-operator")
    assert "secrets" not in str(objects["ClusterRole"]["rules"])
    assert "secrets" in str(objects["Role"]["rules"])
    assert "pods/exec" not in str(objects["ClusterRole"]["rules"])


@needs_helm
@pytest.mark.parametrize("gang_scheduler", ["volcano", ""])
def test_the_training_operator_may_watch_the_groups_of_any_scheduler_that_the_cluster_has(gang_scheduler: str) -> None:
    rules = rendered("training-operator", gang_scheduler=gang_scheduler)["ClusterRole"]["rules"]
    groups = {group for rule in rules if rule["resources"] == ["podgroups"] for group in rule["apiGroups"]}
    assert groups == {"scheduling.volcano.sh", "scheduling.x-k8s.io"}


@needs_helm
def test_the_certificate_is_left_to_the_operator() -> None:
    objects = rendered("training-operator")
    assert "data" not in objects["Secret"]
    configurations = objects["ValidatingWebhookConfiguration"]["webhooks"]
    assert all("caBundle" not in webhook["clientConfig"] for webhook in configurations)


@needs_helm
@pytest.mark.parametrize("chart", ["jobset", "trainer"])
def test_a_certificate_and_who_trusts_it_are_left_to_the_controller(chart: str) -> None:
    objects = rendered(chart)
    assert "data" not in objects["Secret"]
    webhooks = [hook for kind in objects if "Webhook" in kind for hook in objects[kind]["webhooks"]]
    assert webhooks
    for webhook in webhooks:
        assert "caBundle" not in webhook["clientConfig"]
        assert webhook["clientConfig"]["service"]["name"] == objects["Service"]["metadata"]["name"]
        assert objects["Service"]["spec"]["selector"] == objects["Deployment"]["spec"]["selector"]["matchLabels"]


@needs_helm
def test_no_pod_waits_for_jobset() -> None:
    objects = rendered("jobset")
    rules = [
        rule
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        for hook in objects[kind]["webhooks"]
        for rule in hook["rules"]
    ]
    assert {resource for rule in rules for resource in rule["resources"]} == {"jobsets"}


@needs_helm
def test_trainer_may_look_up_the_priority_of_a_gang() -> None:
    (rule,) = [rule for rule in rendered("trainer")["ClusterRole"]["rules"] if "priorityclasses" in rule["resources"]]
    assert rule["verbs"] == ["get", "list", "watch"]


@needs_helm
def test_jobset_reads_no_secrets_but_its_own_and_trainer_makes_none() -> None:
    assert "secrets" not in str(rendered("jobset")["ClusterRole"]["rules"])
    rules = rendered("trainer")["ClusterRole"]["rules"]
    assert [rule["verbs"] for rule in rules if "secrets" in rule["resources"]] == [["list", "watch"]]


@needs_helm
@pytest.mark.parametrize("replicas", [1, 2])
def test_several_replicas_elect_a_leader_and_one_does_not_need_to(replicas: int) -> None:
    elects = replicas > 1
    assert ("--leader-elect" in container("training-operator", replicas=replicas)["args"]) == elects
    assert f"--leader-elect={str(elects).lower()}" in container("jobset", replicas=replicas)["args"]
    trainer = yaml.safe_load(rendered("trainer", replicas=replicas)["ConfigMap"]["data"]["configuration.yaml"])
    assert trainer["leaderElection"]["leaderElect"] is elects


@needs_helm
def test_a_gang_scheduler_is_named_only_where_there_is_one() -> None:
    assert "--gang-scheduler-name=volcano" in container("training-operator")["args"]
    assert "--gang-scheduling=volcano" in container("mpi-operator")["args"]
    for chart in VERSIONS:
        assert "gang" not in str(container(chart, gang_scheduler="")["args"])


@pytest.mark.parametrize("chart", VERSIONS)
def test_chart_and_crds_are_of_the_version_that_the_platform_pins(chart: str) -> None:
    assert yaml.safe_load((CHARTS / chart / "Chart.yaml").read_text())["appVersion"] == VERSIONS[chart]
    first_lines = [path.open().readline() for path in (CHARTS / chart / "crds").glob("*.yaml")]
    assert first_lines
    assert all(re.match(rf"# \S*/{chart}(/v\d)?@{re.escape(VERSIONS[chart])} ", line) for line in first_lines)


def assert_restricted(context: dict[str, Any]) -> None:
    """The securityContext as the `restricted` Pod Security Standard wants it."""
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] > 0
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
