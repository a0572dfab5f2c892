"""How the scheduler is set up, and its queues."""

import pytest
import yaml

from infra.config.platform import Mirrors, Queue, Volcano
from infra.kubernetes.volcano import queue_spec, scheduler_config, volcano_values
from infra.versions import volcano_version
from tests.schemas import validate_manifest


def test_a_gang_that_does_not_fit_gets_its_pods_all_the_same_so_that_autoscalers_see_them() -> None:
    config = yaml.safe_load(scheduler_config(Volcano().actions))
    assert config["actions"] == "allocate, preempt, reclaim, backfill"
    plugins = [plugin["name"] for tier in config["tiers"] for plugin in tier["plugins"]]
    assert "overcommit" not in plugins


def test_queues_share_by_weight() -> None:
    plugins = [
        plugin["name"] for tier in yaml.safe_load(scheduler_config(["allocate"]))["tiers"] for plugin in tier["plugins"]
    ]
    assert "proportion" in plugins
    assert "capacity" not in plugins


def test_an_outage_of_volcano_stops_experiments_and_nothing_else() -> None:
    values = volcano_values(Volcano(), ["research", "product"], Mirrors())
    (expression,) = values["custom"]["webhooks_namespace_selector_expressions"]
    assert expression == {
        "key": "kubernetes.io/metadata.name",
        "operator": "In",
        "values": ["research", "product"],
    }


def test_one_mirror_serves_all_images_of_volcano() -> None:
    basic = volcano_values(Volcano(), [], Mirrors(images={"docker.io": "registry.corp/hub"}))["basic"]
    images = {
        f"{basic['image_registry']}/{basic[f'{part}_image_name']}" for part in ("scheduler", "controller", "admission")
    }
    assert images == {
        "registry.corp/hub/volcanosh/vc-scheduler",
        "registry.corp/hub/volcanosh/vc-controller-manager",
        "registry.corp/hub/volcanosh/vc-webhook-manager",
    }


def test_a_queues_capability_is_written_as_kubernetes_writes_amounts() -> None:
    spec = queue_spec(Queue(name="research", weight=2, capability={"cpu": 64, "memory": "1Ti", "nvidia.com/gpu": 16}))
    assert spec["capability"] == {"cpu": "64", "memory": "1Ti", "nvidia.com/gpu": "16"}
    manifest = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "x"}, "spec": spec}
    assert validate_manifest(manifest) == []


@pytest.mark.parametrize(
    ("kubernetes", "volcano"), [("1.31", "1.12.0"), ("1.33", "1.13.0"), ("v1.34", "1.14.0"), ("1.35", "1.15.0")]
)
def test_the_chart_suits_the_kubernetes_version(kubernetes: str, volcano: str) -> None:
    assert volcano_version(kubernetes) == volcano
