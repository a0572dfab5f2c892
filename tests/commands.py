"""Tests that call a command which not every machine has."""

import shutil
from collections.abc import Callable
from typing import TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., None])


def needs(command: str) -> Callable[[Test], Test]:
    """Skips a test where the command is not on PATH; `make test-cluster` puts all of them there."""

    def marked(test: Test) -> Test:
        missing = pytest.mark.skipif(shutil.which(command) is None, reason=f"{command} is not on PATH")
        return pytest.mark.toolchain(missing(test))

    return marked
