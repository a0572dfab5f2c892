"""Reads `Pulumi.<stack>.yaml` with Pulumi's own idea of a value, and remembers the line of every key.

Checks must see exactly what `pulumi up` will see, and must be able to point at it; no YAML library does both.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import yaml

from infra.config.scalars import plain_scalar
from infra.findings import Finding, InvalidStack, Where, nearest

Kind = Literal["platform", "experiment"]
KINDS: tuple[Kind, ...] = ("platform", "experiment")
PREFIX = "trainyard:"

KeyPath = tuple[str | int, ...]
"""A key path: map keys and list indices from the top of the file."""

_MAX_BYTES = 1_000_000  # a stack file is some hundred lines; anything else is not one
_MAX_KEYS = 100_000  # aliases of aliases can expand a short text without bound


@dataclass(frozen=True, kw_only=True)
class StackFile:
    """One stack file as read, before any validation."""

    stack: str
    file: str
    config: Mapping[str, object]
    lines: Mapping[KeyPath, int] = field(repr=False)

    @property
    def kind(self) -> Kind:
        for kind in KINDS:
            if PREFIX + kind in self.config:
                return kind
        raise AssertionError("read_stack_file lets no other file through")

    @property
    def body(self) -> object:
        """The value under `trainyard:platform` or `trainyard:experiment`."""
        return self.config[PREFIX + self.kind]

    @property
    def region(self) -> str | None:
        region = self.config.get("aws:region")
        return region if isinstance(region, str) else None

    def where(self, keys: KeyPath) -> Where:
        """The place of a key below the body; for a key that is absent, the nearest line that is there."""
        path: KeyPath = ("config", PREFIX + self.kind, *keys)
        while path and path not in self.lines:
            path = path[:-1]
        return Where(file=self.file, line=self.lines.get(path), key=dotted(keys) or PREFIX + self.kind)


def value_at(body: object, keys: KeyPath) -> object:
    """What stands at a key path; None when nothing does, or the path leads through something else than a map."""
    for key in keys:
        body = body.get(key) if isinstance(body, Mapping) else None
    return body


def dotted(keys: KeyPath) -> str:
    """`("volumes", 0, "mount")` as `volumes[0].mount`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).lstrip(".")


def read_stack_file(path: Path) -> StackFile:
    """The stack file at `path`; raises InvalidStack when it is not one of ours."""
    stack = path.name.removeprefix("Pulumi.").removesuffix(".yaml")

    def invalid(rule: str, message: str, fix: str, line: int | None = None, key: str | None = None) -> InvalidStack:
        where = Where(file=path.name, line=line, key=key)
        return InvalidStack([Finding(rule=rule, severity="error", where=where, message=message, fix=fix)])

    try:
        raw = path.read_bytes()
        if len(raw) > _MAX_BYTES:
            raise invalid("TY001", f"holds {len(raw)} bytes, which no stack file does", "name a stack file")
        document, lines = parse_yaml(raw.decode())
    except OSError as error:
        raise invalid("TY001", f"cannot be read: {error.strerror}", "name a stack or a file that exists") from None
    except UnicodeDecodeError as error:
        raise invalid("TY001", f"is not UTF-8 text (byte {error.start})", "save the file as UTF-8") from None
    except YamlError as error:
        raise invalid("TY001", f"is not YAML that Pulumi takes: {error}", error.fix, error.line) from None

    if not isinstance(document, dict) or not isinstance(document.get("config"), dict):
        raise invalid(
            "TY002", "has no `config:` map", "start from a stack file of the same kind, such as Pulumi.mnist.yaml"
        )
    config = document["config"]
    kinds = [kind for kind in KINDS if PREFIX + kind in config]
    if len(kinds) != 1:
        keys = " and ".join(PREFIX + kind for kind in kinds) or listed_keys(config)
        raise invalid(
            "TY002",
            f"`config:` holds {keys}; a stack is exactly one of {PREFIX}platform and {PREFIX}experiment",
            f"keep one of the two keys.{nearest(next(iter(config), ''), [PREFIX + kind for kind in KINDS])}",
            line=lines.get(("config",)),
        )
    return StackFile(stack=stack, file=path.name, config=config, lines=lines)


def listed_keys(config: Mapping[str, object]) -> str:
    return ", ".join(f"`{key}`" for key in config) or "nothing"


class YamlError(ValueError):
    """The text is not YAML, or YAML that Pulumi would refuse."""

    def __init__(self, message: str, line: int | None, fix: str = "correct the YAML at that line") -> None:
        super().__init__(message)
        self.line = line
        self.fix = fix


def parse_yaml(text: str) -> tuple[object, dict[KeyPath, int]]:
    """The document's value and the line of each key path in it."""
    lines: dict[KeyPath, int] = {}
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise YamlError(str(error.problem), line) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise YamlError(str(error).splitlines()[0], None) from None
    return (None if node is None else _value(node, (), lines, ())), lines


def _value(node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int], parents: tuple[int, ...]) -> object:
    lines.setdefault(path, node.start_mark.line + 1)
    if len(lines) > _MAX_KEYS:
        raise YamlError(f"holds more than {_MAX_KEYS} keys", node.start_mark.line + 1, "write fewer aliases")
    if id(node) in parents:
        raise YamlError("an anchor contains itself", node.start_mark.line + 1)
    parents = (*parents, id(node))
    if isinstance(node, yaml.MappingNode):
        return dict(_entries(node, path, lines, parents))
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, index), lines, parents) for index, item in enumerate(node.value)]
    assert isinstance(node, yaml.ScalarNode)
    return plain_scalar(node.value) if node.style is None else node.value


def _entries(
    node: yaml.MappingNode, path: KeyPath, lines: dict[KeyPath, int], parents: tuple[int, ...]
) -> Iterator[tuple[str, object]]:
    seen: set[str] = set()
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise YamlError("a key must be a plain word", line)
        key = key_node.value
        if key == "<<" and key_node.style is None:
            raise YamlError("merge keys (<<) are not supported", line, "write the merged keys out")
        if key in seen:
            raise YamlError(f"the key `{key}` appears twice", line, "keep one of the two")
        seen.add(key)
        lines[(*path, key)] = line
        yield key, _value(value_node, (*path, key), lines, parents)
