"""Scalars are read as Pulumi reads them (Go's yaml.v3), not as PyYAML does."""

import json
import math
import os
import subprocess
from pathlib import Path

import pytest

from infra.config.scalars import plain_scalar
from infra.config.stackfile import parse_yaml
from tests.commands import needs


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3e-4", 3e-4),
        ("1E5", 100_000),
        ("1e+05", 100_000),
        ("1e400", "1e400"),
        (".5", 0.5),
        ("5.", 5),
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
        ("019", 19),
        ("-7", -7),
        ("+7", 7),
        ("1.33", 1.33),
        ("1.33.1", "1.33.1"),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 2**64),
        ("1e21", 1e21),
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


@needs("pulumi")
def test_the_cli_reads_the_same_values(tmp_path: Path) -> None:
    texts = [
        *(
            "3e-4",
            "1E5",
            ".5",
            "5.",
            "no",
            "off",
            "Yes",
            "12:30",
            "true",
            "tRUE",
            "~",
            "1_000",
            "0x1F",
            "0b101",
            "0o17",
        ),
        *("017", "019", "-7", "+7", "1.33", "1.33.1", "1e400", "1e", "-x", "p4d.24xlarge", "_1", "0x", "08.5", "0B11"),
    ]
    (tmp_path / "Pulumi.yaml").write_text(f"name: scalars\nruntime: yaml\nbackend: {{url: 'file://{tmp_path}'}}\n")
    environment = {**os.environ, "PULUMI_CONFIG_PASSPHRASE": "x", "PULUMI_SKIP_UPDATE_CHECK": "true"}

    def pulumi(*words: str) -> str:
        command = ["pulumi", *words, "--stack", "one"]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout

    pulumi("stack", "init")
    stack_file = tmp_path / "Pulumi.one.yaml"
    stack_file.write_text("config:\n  scalars:v:\n" + "".join(f"    - {text}\n" for text in texts))
    theirs = json.loads(pulumi("config", "--json"))["scalars:v"]["objectValue"]
    document, _ = parse_yaml(stack_file.read_text())
    assert document == {"config": {"scalars:v": theirs}}
