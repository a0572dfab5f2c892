"""Token files: what is written is read back, what is damaged is refused, and how text becomes one."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import tyro
from tokenizers import Tokenizer

from tests.training.conftest import ROOT
from training.core.exits import ConfigurationError
from training.core.process import Processes
from training.core.tokens import Corpus, Sequences, bundled_corpus, token_file, write_token_file
from training.prepare_tokens import END, Preparation, main

CPU = torch.device("cpu")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.bin"
    write_token_file(path, [[1, 2, 3], [4, 5], []], vocab=300)
    return path


def test_tokens_are_read_as_written_in_two_or_four_bytes(alone: Processes, tmp_path: Path) -> None:
    for vocab, size_bytes in ((2**16, 2), (2**16 + 1, 4)):
        path = tmp_path / f"{vocab}.bin"
        header = write_token_file(path, [[0, 1], [vocab - 1]], vocab=vocab)
        assert path.stat().st_size == 3 * size_bytes == header.count * size_bytes
        assert int.from_bytes(path.read_bytes()[-size_bytes:], "little") == vocab - 1
        corpus = token_file(path, alone)
        assert corpus.tokens.tolist() == [0, 1, vocab - 1]
        assert corpus.vocab == vocab


def refusal(path: Path, procs: Processes) -> str:
    with pytest.raises(ConfigurationError) as refused:
        token_file(path, procs)
    return str(refused.value)


def test_a_file_that_is_missing_or_damaged_is_refused_by_name(alone: Processes, file: Path) -> None:
    assert (
        refusal(file.with_name("other.bin"), alone)
        == f"--data {file.with_name('other.bin')}: there is no such .bin file"
    )
    assert "no such .bin file" in refusal(file.with_suffix(".json"), alone)

    content = file.read_bytes()
    file.write_bytes(content[:-1])
    assert "it has 9 bytes, and 5 tokens of uint16 take 10" in refusal(file, alone)
    file.write_bytes(content[:-1] + b"\x01")
    assert "it does not have the checksum that corpus.json gives" in refusal(file, alone)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "must have the keys dtype, count, vocab, sha256"),
        ({"more": 1}, "must have the keys dtype, count, vocab, sha256"),
        ({"dtype": "int16"}, "dtype is 'int16': must be one of uint16, uint32"),
        ({"dtype": ["uint16"]}, "dtype is ['uint16']: must be one of uint16, uint32"),
        ({"count": "5"}, "count is '5': must be a whole number from 1"),
        ({"vocab": True}, "vocab is True: must be a whole number from 1"),
    ],
)
def test_a_wrong_description_is_refused_by_key(
    header: str | dict[str, object], message: str, alone: Processes, file: Path
) -> None:
    path = file.with_suffix(".json")
    text = header if isinstance(header, str) else json.dumps(json.loads(path.read_text()) | header)
    path.write_text(text)
    assert f"--data: {path}" in refusal(file, alone)
    assert message in refusal(file, alone)


def test_without_its_description_a_file_is_refused(alone: Processes, file: Path) -> None:
    file.with_suffix(".json").unlink()
    assert f"cannot read {file.with_suffix('.json')}, the tokens' description" in refusal(file, alone)


def test_every_token_is_an_input_once_and_its_successor_the_target() -> None:
    corpus = Corpus(tokens=np.arange(10, dtype=np.uint16), vocab=10, name="ten tokens")
    sequences = Sequences(corpus, length=3, vocab=16)
    assert len(sequences) == 3
    inputs, targets = sequences.batch(torch.tensor([2, 0]), CPU)
    assert inputs.tolist() == [[6, 7, 8], [0, 1, 2]]
    assert targets.tolist() == [[7, 8, 9], [1, 2, 3]]
    assert inputs.dtype == torch.int64
    assert len(Sequences(Corpus(tokens=np.arange(9), vocab=10, name="nine"), length=3, vocab=16)) == 2


def test_a_corpus_that_does_not_fit_the_model_is_refused() -> None:
    corpus = Corpus(tokens=np.arange(10), vocab=10, name="ten tokens")
    with pytest.raises(ConfigurationError, match="--vocab 9 is too small for ten tokens: it has 10 tokens"):
        Sequences(corpus, length=3, vocab=9)
    with pytest.raises(ConfigurationError, match="--sequence 10 is too long for ten tokens: it has 10 tokens in all"):
        Sequences(corpus, length=10, vocab=10)


def test_the_corpus_that_python_carries_is_english() -> None:
    corpus = bundled_corpus()
    assert len(corpus.tokens) > 300_000
    assert b"statement" in corpus.tokens.tobytes()


def test_text_survives_the_way_into_a_token_file_and_back(alone: Processes, tmp_path: Path) -> None:
    long = "Grüße, 世界! the cat sat on the mat\n" * 5000  # several pieces
    pages = [f"a page that spells {END}", "two\nlines\r\n"]
    (tmp_path / "long.txt").write_text(long)
    (tmp_path / "pages.jsonl").write_text("".join(json.dumps({"body": page}) + "\n" for page in pages))
    output = tmp_path / "made" / "corpus.bin"
    inputs = (tmp_path / "long.txt", tmp_path / "pages.jsonl")
    main(Preparation(inputs=inputs, output=output, vocab=400, field="body"))

    corpus = token_file(output, alone)
    tokenizer = Tokenizer.from_file(str(output.with_suffix(".tokenizer.json")))
    assert corpus.vocab == tokenizer.get_vocab_size() <= 400
    assert len(corpus.tokens) < len(long.encode()) / 2
    ends = np.flatnonzero(corpus.tokens == tokenizer.token_to_id(END))
    assert len(ends) == 3
    assert ends[-1] == len(corpus.tokens) - 1
    documents = [
        part.tolist()[(0 if number == 0 else 1) :] for number, part in enumerate(np.split(corpus.tokens, ends))
    ]
    assert [tokenizer.decode(document, skip_special_tokens=False) for document in documents[:3]] == [long, *pages]


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ({"a.txt": b""}, ["a.txt"], "there is no text in a.txt"),
        ({"a.txt": b"fine\n" * 20_000 + b"x\xff"}, ["a.txt"], "a.txt: is not UTF-8 text at byte 100001"),
        ({"a.jsonl": b'{"text": "x"}\n{"txt": "y"}\n'}, ["a.jsonl"], 'a.jsonl, line 2: is not JSON like {"text": "…"}'),
        ({"a.jsonl": b'{"text": "x"}\n[1\n'}, ["a.jsonl"], "a.jsonl, line 2: is not JSON"),
        ({}, ["a.txt"], "a.txt: cannot be read: No such file or directory"),
        ({}, [], "name at least one text or .jsonl file"),
        ({"a.txt": b"x"}, ["a.txt", "--vocab", "256"], "--vocab 256: must be at least 257"),
        ({"a.txt": b"x"}, ["a.txt", "--output", "a.txt"], "--output a.txt: its name must end in .bin"),
    ],
)
def test_what_cannot_be_prepared_is_refused_and_nothing_is_written(
    content: dict[str, bytes], arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, body in content.items():
        Path(name).write_bytes(body)
    with pytest.raises(ConfigurationError) as refused:
        main(tyro.cli(Preparation, args=["--output", "out.bin", *arguments]))
    assert message in str(refused.value)
    assert {path.name for path in tmp_path.iterdir()} == set(content)


def test_the_command_line_ends_with_one_line_and_code_2(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "training.prepare_tokens", "none.txt", "--output", str(tmp_path / "out.bin")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "none.txt: cannot be read: No such file or directory\n")
