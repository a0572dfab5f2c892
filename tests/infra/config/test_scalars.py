"""Scalars are read as Pulumi reads them (Go's yaml.v3), not as PyYAML does."""

import math

import pytest

from infra.config.scalars import plain_scalar


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3e-4", 3e-4),
        ("1E5", 1e5),
        (".5", 0.5),
        ("5.", 5.0),
        ("no", "no"),
        ("off", "off"),
        ("Yes", "Yes"),
        ("12:30", "12:30"),
        ("190:20:30", "190:20:30"),
        ("true", True),
        ("TRUE", True),
        ("tRUE", "tRUE"),
        ("~", None),
        ("null", None),
        ("Null", None),
        ("1_000", 1000),
        ("0x1F", 31),
        ("0b101", 5),
        ("0o17", 15),
        ("017", 15),
        ("019", 19.0),
        ("-7", -7),
        ("+7", 7),
        ("1.33", 1.33),
        ("1.33.1", "1.33.1"),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 2.0**64),
        ("1e", "1e"),
        ("-", "-"),
        ("p4d.24xlarge", "p4d.24xlarge"),
        ("10.0.0.0/16", "10.0.0.0/16"),
        ("_1", "_1"),
    ],
)
def test_a_plain_scalar_has_the_value_that_pulumi_gives_it(text: str, value: object) -> None:
    read = plain_scalar(text)
    assert read == value
    assert type(read) is type(value)


def test_infinities_and_nan_are_numbers() -> None:
    assert plain_scalar("-.inf") == -math.inf
    assert isinstance(plain_scalar(".nan"), float)
