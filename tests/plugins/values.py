"""Properties between the engine's protobuf and plain Python.

In protobuf a secret is a map with a signature. Plain values are easier to work with, so secrets are unwrapped on the
way in, their places are remembered, and what stands in those places is wrapped again on the way out.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf.struct_pb2 import Struct, Value

Path = tuple[str | int, ...]
Properties = dict[str, Any]

# Constants of the wire format: sdk/go/common/resource/plugin/rpc.go and sdk/go/common/resource/sig/sig.go.
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SIGNATURE_KEY = "4dabf18193072939515e22adb298388d"
SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"


def properties_of(struct: Struct) -> Properties:
    """The values of a message, without secrets' wrapping and without nulls in maps, as the engine's own plugins do."""
    return {key: _plain(value) for key, value in struct.fields.items() if not value.HasField("null_value")}


def _plain(value: Value) -> Any:
    match value.WhichOneof("kind"):
        case "number_value":
            # Protobuf knows only floats; Kubernetes refuses 3.0 where it wants 3.
            return int(value.number_value) if value.number_value.is_integer() else value.number_value
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case "list_value":
            return [_plain(element) for element in value.list_value.values]
        case "struct_value":
            fields = value.struct_value.fields
            return _plain(fields["value"]) if _is_secret(value.struct_value) else properties_of(value.struct_value)
    return None


def secret_paths(struct: Struct) -> list[Path]:
    """Where the secrets of a message are, outermost ones only."""
    return [path for key, value in struct.fields.items() for path in _secrets_in(value, (key,))]


def _secrets_in(value: Value, path: Path) -> Iterator[Path]:
    if value.HasField("list_value"):
        for index, element in enumerate(value.list_value.values):
            yield from _secrets_in(element, (*path, index))
    elif value.HasField("struct_value"):
        if _is_secret(value.struct_value):
            yield path
        else:
            for key, field in value.struct_value.fields.items():
                yield from _secrets_in(field, (*path, key))


def _is_secret(struct: Struct) -> bool:
    return SIGNATURE_KEY in struct.fields and struct.fields[SIGNATURE_KEY].string_value == SECRET_SIGNATURE


def struct_of(properties: Properties, secrets: Iterable[Path] = ()) -> Struct:
    """The message for the engine; whatever stands at a secret's path is wrapped."""
    struct = Struct()
    struct.update(_wrapped(properties, set(secrets)))
    return struct


def _wrapped(value: Any, secrets: set[Path], path: Path = ()) -> Any:
    if path in secrets:
        return {SIGNATURE_KEY: SECRET_SIGNATURE, "value": value}
    if isinstance(value, dict):
        return {key: _wrapped(field, secrets, (*path, key)) for key, field in value.items()}
    if isinstance(value, list):
        return [_wrapped(element, secrets, (*path, index)) for index, element in enumerate(value)]
    return value


def contains_unknown(value: Any) -> bool:
    """Whether any of it will be known only after an update."""
    if isinstance(value, dict):
        return any(map(contains_unknown, value.values()))
    if isinstance(value, list):
        return any(map(contains_unknown, value))
    return bool(value == UNKNOWN)
