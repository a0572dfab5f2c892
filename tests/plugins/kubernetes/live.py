"""A live object in the shape of the inputs that made it, so that only what somebody changed looks changed.

A server adds defaults and status: left out. It drops zero values and writes quantities its own way (1000m becomes 1):
taken as the inputs have them.
"""

import base64
from typing import Any

from kubernetes.utils.quantity import parse_quantity

Manifest = dict[str, Any]

_HOLD_QUANTITIES = {"requests", "limits", "capacity", "hard"}


def live_inputs(inputs: Manifest, live: Manifest) -> Manifest:
    """The inputs that would make the object as it is now."""
    if "stringData" in inputs:  # the server keeps it, encoded, as `data`
        encoded = live.get("data") or {}
        live = {**live, "stringData": {key: _decoded(text) for key, text in encoded.items()}}
    shaped: Manifest = _shaped(inputs, live, quantities=False)
    return shaped


def all_inputs(live: Manifest) -> Manifest:
    """What an import takes as inputs: everything that is not the server's own."""
    metadata = live["metadata"]
    own = {key: metadata[key] for key in ("name", "namespace", "labels", "annotations") if key in metadata}
    return {**{key: value for key, value in live.items() if key != "status"}, "metadata": own}


def _shaped(inputs: Any, live: Any, *, quantities: bool) -> Any:
    if isinstance(inputs, dict) and isinstance(live, dict):
        shaped = {}
        for key, value in inputs.items():
            if key in live:
                shaped[key] = _shaped(value, live[key], quantities=quantities or key in _HOLD_QUANTITIES)
            elif not value:
                shaped[key] = value
        return shaped
    if isinstance(inputs, list) and isinstance(live, list):
        both = [_shaped(mine, its, quantities=False) for mine, its in zip(inputs, live, strict=False)]
        return both + live[len(inputs) :]
    return inputs if quantities and _same_amount(inputs, live) else live


def _same_amount(one: Any, other: Any) -> bool:
    try:
        parse: Any = parse_quantity
        return bool(parse(one) == parse(other))
    except ValueError:
        return False


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode(errors="replace")
