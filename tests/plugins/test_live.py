"""A live object in the shape of its inputs: what the server added is no drift, what somebody changed is."""

from typing import Any

import pytest

from tests.plugins.kubernetes.live import all_inputs, live_inputs


def _quota(hard: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "q"}, "spec": {"hard": hard, **more}}


def test_defaults_and_status_of_the_server_are_left_out() -> None:
    inputs = {"spec": {"containers": [{"image": "a"}]}}
    live = {"spec": {"containers": [{"image": "a", "imagePullPolicy": "Always"}], "dnsPolicy": "x"}, "status": {}}
    assert live_inputs(inputs, live) == inputs


def test_another_spelling_of_a_quantity_is_no_drift_and_another_amount_is() -> None:
    inputs = _quota({"cpu": "1000m", "memory": "1024Mi", "pods": 3})
    assert live_inputs(inputs, _quota({"cpu": "1", "memory": "1Gi", "pods": "3"})) == inputs
    assert live_inputs(inputs, _quota({"cpu": "2", "memory": "1Gi", "pods": "3"}))["spec"]["hard"]["cpu"] == "2"


def test_text_that_could_be_a_quantity_is_compared_as_text() -> None:
    assert live_inputs({"data": {"a": "1000m"}}, {"data": {"a": "1"}}) == {"data": {"a": "1"}}


def test_what_somebody_removed_is_gone_and_zero_values_that_the_server_drops_are_not() -> None:
    inputs = {"metadata": {"labels": {"a": "b"}}, "hostNetwork": False, "args": []}
    assert live_inputs(inputs, {"metadata": {}}) == {"metadata": {}, "hostNetwork": False, "args": []}


@pytest.mark.parametrize("items", [[{"a": 1}], [{"a": 1}, {"a": 2}, {"a": 3}]])
def test_elements_that_somebody_added_or_removed_show(items: list[dict[str, int]]) -> None:
    assert live_inputs({"items": [{"a": 1}, {"a": 2}]}, {"items": items}) == {"items": items}


def test_string_data_is_read_back_from_what_the_server_made_of_it() -> None:
    inputs = {"stringData": {"password": "old"}}
    assert live_inputs(inputs, {"data": {"password": "bmV3"}}) == {"stringData": {"password": "new"}}


def test_an_import_takes_nothing_that_is_the_servers_own() -> None:
    metadata = {"name": "a", "labels": {"b": "c"}, "uid": "1", "resourceVersion": "2"}
    live = {"kind": "ConfigMap", "metadata": metadata, "data": {}, "status": {}}
    assert all_inputs(live) == {"kind": "ConfigMap", "metadata": {"name": "a", "labels": {"b": "c"}}, "data": {}}
