"""Reading a stack file: values, lines, and what is refused before any model sees it."""

from pathlib import Path

import pytest

from infra.config.stackfile import YamlError, dotted, parse_yaml, read_stack_file
from infra.findings import InvalidStack


def test_every_key_path_has_its_line() -> None:
    document, lines = parse_yaml("a: 1\nb:\n  - {c: 2}\n  - c: 3\n")
    assert document == {"a": 1, "b": [{"c": 2}, {"c": 3}]}
    assert lines[("b",)] == 2
    assert lines[("b", 0, "c")] == 3
    assert lines[("b", 1, "c")] == 4


def test_a_quoted_scalar_stays_text() -> None:
    document, _ = parse_yaml("""a: "8"\nb: 'no'\nc: |\n  3e-4\n""")
    assert document == {"a": "8", "b": "no", "c": "3e-4\n"}


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("a: 1\na: 2\n", "appears twice", 2),
        ("a:\n\t- b\n", "cannot start any token", 2),
        ("a: [1\n", "expected ',' or ']'", 2),
        ("a: &x [*x]\n", "contains itself", 1),
        ("a: *nowhere\n", "undefined alias", 1),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "merge keys", 3),
        ("? [1]\n: 2\n", "a key must be a plain word", 1),
    ],
)
def test_what_pulumi_would_refuse_or_misread_is_refused_with_its_line(text: str, message: str, line: int) -> None:
    with pytest.raises(YamlError, match=message) as caught:
        parse_yaml(text)
    assert caught.value.line == line


def test_aliases_cannot_expand_without_bound() -> None:
    levels = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 9))
    with pytest.raises(YamlError, match="more than"):
        parse_yaml(f"l0: &l0 [x]\n{levels}\n")


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"", "TY002"),
        (b"config: [1]\n", "TY002"),
        (b"config: {}\n", "TY002"),
        (b"config:\n  trainyard:experimnt: {}\n", "TY002"),
        (b"config:\n  trainyard:experiment: {}\n  trainyard:platform: {}\n", "TY002"),
        (b"\xff\xfe\x00", "TY001"),
        (b"config: {a: [}\n", "TY001"),
        (b"x" * 1_000_001, "TY001"),
    ],
)
def test_a_file_that_is_no_stack_says_so(tmp_path: Path, content: bytes, rule: str) -> None:
    path = tmp_path / "Pulumi.odd.yaml"
    path.write_bytes(content)
    with pytest.raises(InvalidStack) as caught:
        read_stack_file(path)
    (finding,) = caught.value.findings
    assert finding.rule == rule
    assert finding.where.file == "Pulumi.odd.yaml"
    assert finding.fix


def test_a_folder_and_a_missing_file_are_unreadable(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "Pulumi.absent.yaml"):
        with pytest.raises(InvalidStack) as caught:
            read_stack_file(path)
        assert caught.value.findings[0].rule == "TY001"


def test_the_place_of_an_absent_key_is_the_nearest_line_above_it(tmp_path: Path) -> None:
    path = tmp_path / "Pulumi.a.yaml"
    path.write_text("config:\n  trainyard:experiment:\n    batch:\n      global: 1\n")
    file = read_stack_file(path)
    assert file.where(("batch", "micro")).line == 3
    assert file.where(("batch", "global")).line == 4
    assert file.where(("nodes",)).line == 2


def test_a_key_path_is_written_as_people_type_it() -> None:
    assert dotted(("volumes", 0, "mount")) == "volumes[0].mount"
