"""Queues: what one may hold at most, and how it goes away."""

import pytest
import yaml

from tests.cluster.experiments import running, until_running, until_succeeded, until_unschedulable
from tests.cluster.kube import get, phases
from tests.cluster.pulumi_cli import Checkout

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

_CPU = 0.2  # of one pod: the node has room for both gangs, the queue for one


def test_a_queue_holds_a_gang_back_at_its_capability_and_can_be_taken_away(platform: Checkout) -> None:
    path = platform.folder / "Pulumi.local.yaml"
    stack = yaml.safe_load(path.read_text())
    stack["config"]["trainyard:platform"]["operators"]["volcano"]["queues"] = [
        {"name": "narrow", "capability": {"cpu": 0.5}}
    ]
    path.write_text(yaml.safe_dump(stack))
    platform.up("local")
    settings = ["queue=narrow", f"resources.cpu={_CPU}"]
    try:
        with running(platform, "mnist", *settings, "args.steps=20000") as first:
            until_running(first, 2)
            with running(platform, "mnist-indexed", *settings, "args.steps=50") as second:
                until_unschedulable(second)
                assert phases(second) == ["Pending", "Pending"]
                platform.destroy("mnist")
                until_succeeded(second)
    finally:
        platform.restore("local")
        platform.up("local")
    assert not get("queues.scheduling.volcano.sh", "narrow")
