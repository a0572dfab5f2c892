"""YAML scalars as Pulumi reads them.

Pulumi parses stack files with Go's yaml.v3, PyYAML follows YAML 1.1, and the two disagree where it hurts: `3e-4` is a
number there and a string here, `no` and `12:30` are strings there and `False` and `750` here. This is yaml.v3's
`resolve.go` (v3.0.1) for plain scalars, in its order; dates alone stay as they are written.
"""

import math
import re

_WORDS: dict[str, object] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_GO_WRITES_AN_EXPONENT = 1e21
_MAX_INTEGER = 2**64  # beyond it, Go's ParseUint gives up and the text becomes a float


def plain_scalar(text: str) -> object:
    """The value of an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    digits = text.replace("_", "") if text[0] in "+-.0123456789" else text
    if _INTEGER.fullmatch(digits):
        number = _integer(digits)
        if -_MAX_INTEGER // 2 <= number < _MAX_INTEGER:
            return number
    if _FLOAT.fullmatch(digits) and not math.isinf(float(digits)):
        return _as_in_json(float(digits))
    return text


def _as_in_json(number: float) -> int | float:
    """Pulumi keeps a structured value as JSON, where Go writes 1e5 as 100000: a whole number again."""
    return int(number) if number.is_integer() and abs(number) < _GO_WRITES_AN_EXPONENT else number


def _integer(digits: str) -> int:
    if re.fullmatch(r"[-+]?0[0-7]+", digits):
        return int(digits, 8)  # YAML 1.1's octal, which yaml.v3 still takes
    return int(digits, 0)
