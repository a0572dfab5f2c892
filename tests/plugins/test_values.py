"""Properties survive the way through protobuf, and a secret stays one."""

from google.protobuf.struct_pb2 import Struct

from tests.plugins.values import (
    SECRET_SIGNATURE,
    SIGNATURE_KEY,
    UNKNOWN,
    contains_unknown,
    properties_of,
    secret_paths,
    struct_of,
)


def _struct(**properties: object) -> Struct:
    struct = Struct()
    struct.update(properties)
    return struct


def _secret(value: object) -> dict[str, object]:
    return {SIGNATURE_KEY: SECRET_SIGNATURE, "value": value}


def test_whole_numbers_come_out_whole() -> None:
    plain = properties_of(_struct(replicas=3, ratio=0.5, suspend=False, names=["a"]))
    assert plain == {"replicas": 3, "ratio": 0.5, "suspend": False, "names": ["a"]}
    assert isinstance(plain["replicas"], int)


def test_nulls_of_maps_are_left_out_and_those_of_lists_keep_their_place() -> None:
    assert properties_of(_struct(gone=None, kept={"gone": None}, items=[None, 1])) == {"kept": {}, "items": [None, 1]}


def test_secrets_are_unwrapped_and_wrapped_again_in_their_places() -> None:
    struct = _struct(data=_secret({"password": "x"}), env=[{"value": "plain"}, {"value": _secret("y")}])
    plain = properties_of(struct)
    assert plain == {"data": {"password": "x"}, "env": [{"value": "plain"}, {"value": "y"}]}
    assert struct_of(plain, secret_paths(struct)) == struct


def test_a_path_to_nothing_wraps_nothing() -> None:
    assert struct_of({"data": {"a": "b"}}, [("stringData",), ("data", "c")]) == _struct(data={"a": "b"})


def test_the_unknown_is_found_at_any_depth() -> None:
    assert contains_unknown({"spec": [{"name": UNKNOWN}]})
    assert not contains_unknown({"spec": [{"name": "known"}]})
