"""What AWS would refuse is refused before anything is made."""

from typing import Any

import pytest

from infra.aws.limits import bucket_name, impossible
from infra.config.platform import EksPlatform
from infra.unbuilt import UNBUILT_ON_EKS

SYSTEM = {"name": "system", "instance_type": "m5.xlarge", "min": 2, "max": 4}
BLOCK = {"name": "h100", "instance_type": "p5.48xlarge", "max": 2, "capacity": {"block": "cr-0123456789abcdef0"}}


def found(**keys: Any) -> dict[str, str]:
    """Dotted key → remedy."""
    body = {
        "target": "eks",
        "network": {"zones": ["us-east-1a", "us-east-1b"]},
        "node_groups": [SYSTEM],
        "teams": [{"name": "default", "namespace": "training"}],
        **keys,
    }
    config = EksPlatform.model_validate(body)
    problems = impossible(config, stack="dev", region="us-east-1")
    return {".".join(map(str, problem.keys)): problem.fix for problem in problems}


def test_a_sound_platform_has_nothing_to_refuse() -> None:
    assert found() == {}


@pytest.mark.parametrize(
    ("keys", "where", "remedy"),
    [
        ({"network": {"zones": ["us-east-1a", "eu-west-1a"]}}, "network.zones.1", "us-east-1a"),
        ({"network": {"zones": ["us-east-1a", "us-east-1a"]}}, "network.zones.1", "another zone"),
        ({"network": {"zones": ["us-east-1a", "us-east-1b"], "cidr": "10.0.0.0/25"}}, "network.cidr", "/22"),
        ({"node_groups": [{**SYSTEM, "zone": "us-east-1f"}]}, "node_groups.0.zone", "us-east-1a, us-east-1b"),
        ({"node_groups": [SYSTEM, BLOCK]}, "node_groups.1.capacity", "zone"),
        ({"node_groups": [SYSTEM, {**SYSTEM, "name": "none", "min": 0, "max": 0}]}, "node_groups.1.max", "raise"),
        ({"node_groups": [{**SYSTEM, "min": 0}]}, "node_groups", "system"),
        ({"node_groups": [{**SYSTEM, "taints": [{"key": "mine"}]}]}, "node_groups", "system"),
        ({"node_groups": [{**SYSTEM, "instance_type": "g5.xlarge"}]}, "node_groups", "system"),
        ({"cluster": {"admins": ["platform-admin"]}}, "cluster.admins.0", "arn:aws:iam::"),
        ({"storage": {"buckets": [{"name": "c" * 40, "purpose": "datasets"}]}}, "storage.buckets.0.name", "by 4"),
    ],
)
def test_what_aws_refuses_is_found_at_its_key(keys: dict[str, Any], where: str, remedy: str) -> None:
    problems = found(**keys)
    assert list(problems) == [where]
    assert remedy in problems[where]


def test_bucket_names_tell_account_region_and_stack() -> None:
    name = bucket_name(account_id="123456789012", region="us-east-1", stack="dev", name="checkpoints")
    assert name == "123456789012-us-east-1-dev-checkpoints"


def test_what_is_not_built_is_a_key_of_the_configuration() -> None:
    assert set(UNBUILT_ON_EKS) <= set(EksPlatform.model_fields)


def test_two_file_systems_cannot_share_one_storage_class() -> None:
    assert found(storage={"efs": [{"name": "one"}, {"name": "two"}]}) == {
        "storage.efs.1.class": "add a class of its own, such as `class: two`"
    }
    assert found(storage={"efs": [{"name": "one"}, {"name": "two", "class": "two"}]}) == {}
