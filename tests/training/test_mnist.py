"""The first program, as its documentation says it is started."""

from tests.training.conftest import start


def test_the_defaults_read_digits(tmp_path) -> None:
    outcome = start("training.mnist", "--checkpoint-path", tmp_path)
    assert (outcome.code, outcome.errors) == (0, "")
    last = dict(pair.split("=") for pair in outcome.output.splitlines()[-1].split())
    assert (last["step"], last["checkpoint"]) == ("300", "300")
    assert float(last["accuracy"]) > 0.95
