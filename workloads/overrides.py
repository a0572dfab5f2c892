"""`--set key=value`: changes to a stack file's values for one call alone."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from infra.config.stackfile import PREFIX, StackFile, YamlError, parse_yaml
from infra.findings import Finding, InvalidStack, Where


def overridden(file: StackFile, overrides: Sequence[str]) -> StackFile:
    """The file with `--set key=value` applied to its body."""
    if not overrides:
        return file
    body: Any = copy.deepcopy(file.body)
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key:
            raise _bad_override(override, "is no assignment", "write --set key=value, such as --set nodes=1")
        try:
            value, _ = parse_yaml(text)
        except YamlError as error:
            raise _bad_override(override, f"has a value that is not YAML: {error}", "quote the value") from None
        _assign(body, override, key.split("."), value)
    return replace(file, config={**file.config, PREFIX + file.kind: body})


def _assign(body: Any, override: str, keys: list[str], value: object) -> None:
    for index, key in enumerate(keys):
        if isinstance(body, list):
            if not key.isdigit() or int(key) >= len(body):
                raise _bad_override(override, f"names entry {key} of a list of {len(body)}", "count from 0")
            place: Any = int(key)
        elif isinstance(body, dict):
            place = key
        else:
            raise _bad_override(override, f"leads through `{keys[index - 1]}`, which is no map", "shorten the key")
        if index == len(keys) - 1:
            body[place] = value
        else:
            if isinstance(body, dict):
                body.setdefault(place, {})
            body = body[place]


def _bad_override(override: str, message: str, fix: str) -> InvalidStack:
    where = Where(file="--set", key=override)
    return InvalidStack([Finding(rule="TY001", severity="error", where=where, message=message, fix=fix)])
