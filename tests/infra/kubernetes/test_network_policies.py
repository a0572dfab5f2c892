"""What a team's namespace lets in and out."""

from typing import Any

import pytest

from infra.kubernetes.network_policies import SERVES_EXPERIMENTS, WATCHES_EXPERIMENTS, team_policy_spec
from tests.infra.lab_platform import on_existing
from tests.infra.recorded_platform import run
from tests.schemas import validate_manifest


def destinations(port: int) -> list[Any]:
    """Where the pods may go on a port that a rule names."""
    rules = team_policy_spec()["egress"]
    return [rule.get("to") for rule in rules if port in {entry["port"] for entry in rule.get("ports", [])}]


def test_every_teams_namespace_has_one_policy_for_all_of_its_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    policies = run(on_existing(), monkeypatch).of_type(":NetworkPolicy")
    assert {policy.inputs["metadata"]["namespace"] for policy in policies} == {"research", "product"}
    for policy in policies:
        assert policy.inputs["spec"]["podSelector"] == {}
        manifest = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
        metadata, spec = policy.inputs["metadata"], policy.inputs["spec"]
        assert validate_manifest({**manifest, "metadata": metadata, "spec": spec}) == []


def test_nothing_comes_in_but_from_namespaces_that_watch() -> None:
    spec = team_policy_spec()
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"] == [{"from": [{"namespaceSelector": {"matchLabels": WATCHES_EXPERIMENTS}}]}]


def test_names_https_and_credentials_are_within_reach_and_the_nodes_own_credentials_are_not() -> None:
    assert destinations(53) == [
        [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}]
    ]
    assert destinations(443) == [None]
    assert destinations(80) == [[{"ipBlock": {"cidr": "169.254.170.23/32"}}]]


def test_all_else_that_a_run_may_call_says_so_of_itself() -> None:
    (without_ports,) = [rule for rule in team_policy_spec()["egress"] if "ports" not in rule]
    assert without_ports == {"to": [{"namespaceSelector": {"matchLabels": SERVES_EXPERIMENTS}}]}
