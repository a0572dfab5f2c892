"""Turn text into a token file for --data, with a byte-level BPE tokenizer trained on that same text.

    python -m training.prepare_tokens books/*.txt pages.jsonl --output corpus.bin --vocab 32000

A .jsonl file has one document per line, `{"text": "…"}`; any other file is one document of UTF-8 text. Each document
ends with the token <|end|>. Beside corpus.bin lie its description, corpus.json, and the tokenizer,
corpus.tokenizer.json, which turns text into tokens and back. The text is read twice, and never held in memory as a
whole: to train the tokenizer, then to apply it.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import tyro
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from training.core.exits import CONFIGURATION, ConfigurationError
from training.core.tokens import write_token_file

END = "<|end|>"
_SMALLEST_VOCAB = 256 + 1
# Long documents are encoded in pieces, cut at the end of a line, for the sake of memory and of parallel work.
_PIECE_BYTES = 2**16
_PIECES_AT_ONCE = 256


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """What to read and what to write."""

    inputs: tyro.conf.Positional[tuple[Path, ...]]
    """Text and .jsonl files."""

    output: Path
    """The token file, named *.bin."""

    vocab: int = 32000
    """Most tokens the tokenizer may have; a short text yields fewer."""

    field: str = "text"
    """Key under which a line of a .jsonl file has its text."""


def main(preparation: Preparation) -> None:
    if not preparation.inputs:
        raise ConfigurationError("name at least one text or .jsonl file")
    if preparation.output.suffix != ".bin":
        raise ConfigurationError(f"--output {preparation.output}: its name must end in .bin")
    if preparation.vocab < _SMALLEST_VOCAB:
        raise ConfigurationError(
            f"--vocab {preparation.vocab}: must be at least {_SMALLEST_VOCAB}, for every byte and {END}"
        )
    if not any(text for text, _ in all_pieces(preparation)):
        raise ConfigurationError(f"there is no text in {', '.join(map(str, preparation.inputs))}")

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=preparation.vocab,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),  # so that no text is beyond it
        show_progress=sys.stdout.isatty(),
    )
    tokenizer.train_from_iterator((text for text, _ in all_pieces(preparation)), trainer)

    tokenizer.encode_special_tokens = True  # a text that spells <|end|> does not end there

    preparation.output.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(preparation.output.with_suffix(".tokenizer.json")))
    header = write_token_file(preparation.output, encoded(preparation, tokenizer), vocab=tokenizer.get_vocab_size())
    print(f"{header.count} tokens; train on them with --data {preparation.output} --vocab {header.vocab}")


def encoded(preparation: Preparation, tokenizer: Tokenizer) -> Iterator[list[int]]:
    """The tokens of every piece, in order."""
    end = tokenizer.token_to_id(END)
    assert end is not None
    pieces = all_pieces(preparation)
    while batch := list(islice(pieces, _PIECES_AT_ONCE)):
        encodings = tokenizer.encode_batch_fast([text for text, _ in batch])
        for encoding, (_, is_last) in zip(encodings, batch, strict=True):
            yield [*encoding.ids, end] if is_last else encoding.ids


def all_pieces(preparation: Preparation) -> Iterator[tuple[str, bool]]:
    """Every document in pieces, each with whether its document ends there."""
    for path in preparation.inputs:
        try:
            yield from jsonl_pieces(path, preparation.field) if path.suffix == ".jsonl" else text_pieces(path)
        except OSError as error:
            raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from None


def jsonl_pieces(path: Path, field: str) -> Iterator[tuple[str, bool]]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                text = json.loads(line)[field]
            except (ValueError, TypeError, KeyError):
                text = None
            if not isinstance(text, str):
                raise ConfigurationError(f'{path}, line {number}: is not JSON like {{"{field}": "…"}}')
            yield text, True


def text_pieces(path: Path) -> Iterator[tuple[str, bool]]:
    with path.open("rb") as file:
        piece = b"".join(file.readlines(_PIECE_BYTES))
        while piece:
            following = b"".join(file.readlines(_PIECE_BYTES))
            try:
                yield piece.decode(), not following
            except UnicodeDecodeError as error:
                place = file.tell() - len(following) - len(piece) + error.start
                raise ConfigurationError(f"{path}: is not UTF-8 text at byte {place}: {error.reason}") from None
            piece = following


if __name__ == "__main__":
    try:
        main(tyro.cli(Preparation, prog="python -m training.prepare_tokens", description=__doc__))
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        sys.exit(CONFIGURATION)
