"""What changed between two sets of inputs, leaf by leaf: what `pulumi preview --diff` shows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tests.plugins.values import Path

Change = Literal["ADD", "DELETE", "UPDATE"]
Changes = dict[Path, Change]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The answer to the engine's question what an update would mean."""

    changes: Changes
    replacing: frozenset[Path] = frozenset()
    """Those changes that cannot be made in place."""
    delete_first: bool = False
    """Whether old and new cannot exist side by side."""


def changes_between(old: Any, new: Any, path: Path = ()) -> Changes:
    """Every leaf that differs; a map or list that only one side has counts as one leaf."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [*old, *(key for key in new if key not in old)]
        return _merged(
            {(*path, key): "ADD"}
            if key not in old
            else {(*path, key): "DELETE"}
            if key not in new
            else changes_between(old[key], new[key], (*path, key))
            for key in keys
        )
    if isinstance(old, list) and isinstance(new, list):
        both = min(len(old), len(new))
        return _merged(
            [
                *(changes_between(old[index], new[index], (*path, index)) for index in range(both)),
                {(*path, index): "DELETE" for index in range(both, len(old))},
                {(*path, index): "ADD" for index in range(both, len(new))},
            ]
        )
    # Python takes True for 1, a manifest does not.
    return {} if old == new and isinstance(old, bool) == isinstance(new, bool) else {path: "UPDATE"}


def _merged(parts: Iterable[Mapping[Path, Change]]) -> Changes:
    return {path: change for part in parts for path, change in part.items()}


def below(changes: Iterable[Path], prefixes: Iterable[Path]) -> frozenset[Path]:
    """The changes at or under any of the prefixes."""
    prefixes = list(prefixes)
    return frozenset(path for path in changes if any(path[: len(prefix)] == prefix for prefix in prefixes))


def property_path(path: Path) -> str:
    """A path as Pulumi writes it: `spec.containers[0].env`, `metadata.labels["app.kubernetes.io/name"]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif any(character in part for character in '."[]'):
            escaped = part.replace('"', '\\"')
            text += f'["{escaped}"]'
        else:
            text += f".{part}" if text else part
    return text
