"""Flags: what is accepted, and what a wrong one is answered."""

from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path

import pytest

from training import mnist
from training.core.exits import ConfigurationError
from training.core.program import parse
from training.core.settings import RunSettings
from workloads.programs import flags_of


@dataclass(frozen=True, kw_only=True)
class Listing(RunSettings):
    """Flags with a list."""

    tag: list[str] = field(default_factory=list)
    """Repeated."""


def test_flags_become_settings() -> None:
    given = [
        "--steps",
        "7",
        "--micro-batch",
        "2",
        "--checkpoint-path",
        "/shared",
        "--no-resume",
        "--tag",
        "a",
        "--tag",
        "b",
    ]
    settings = parse(Listing, given, "training.listing")
    assert settings == Listing(steps=7, micro_batch=2, checkpoint_path=Path("/shared"), no_resume=True, tag=["a", "b"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--steps", "0"], "--steps 0: must be at least 1"),
        (["--checkpoint-keep", "0"], "--checkpoint-keep 0: must be at least 1"),
        (["--micro-batch", "-4"], "--micro-batch -4: must be at least 1"),
        (["--steps", "many"], "--steps: invalid literal .* 'many'"),
        (["--steps"], "Missing value for argument '--steps'"),
        (["--checkpoint-pth", "/x"], "(?s)--checkpoint-pth.*--checkpoint-path"),
        (["--no-resume", "yes"], "yes"),
    ],
)
def test_a_wrong_flag_is_named(given: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as refused:
        parse(RunSettings, given, "training.any")
    assert not set("╭│╰") & set(str(refused.value))


def test_previews_read_the_same_flags_as_the_program() -> None:
    read = flags_of("training.mnist")
    assert set(read) == {declared.name.replace("_", "-") for declared in fields(mnist.Settings)}
    required = {
        declared.name for declared in fields(mnist.Settings) if declared.default is declared.default_factory is MISSING
    }
    assert {name for name, flag in read.items() if flag.required} == required
