"""Text as numbered tokens: the files that a run reads them from, and the sequences it cuts them into.

A token file is two files. `corpus.bin` holds the tokens one after another, little-endian, and nothing else;
`corpus.json` beside it says how to read them::

    {"dtype": "uint16", "count": 12345678, "vocab": 32000, "sha256": "…of corpus.bin"}

dtype is uint16 or uint32, and every token is below vocab. `training.prepare_tokens` writes such a pair; for any other
tokenizer, `write_token_file` does.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from pydoc_data import topics
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from training.core.exits import ConfigurationError
from training.core.process import Processes

_DTYPES: dict[str, np.dtype[Any]] = {"uint16": np.dtype("<u2"), "uint32": np.dtype("<u4")}
_KEYS = ("dtype", "count", "vocab", "sha256")


@dataclass(frozen=True, kw_only=True)
class Header:
    """The description beside the tokens."""

    dtype: str
    count: int
    vocab: int
    sha256: str

    @classmethod
    def read(cls, path: Path) -> "Header":
        """Raises ConfigurationError, with the reason, for what describes no tokens."""
        try:
            body = json.loads(path.read_text())
        except OSError as error:
            raise ConfigurationError(f"--data: cannot read {path}, the tokens' description: {error.strerror}") from None
        except ValueError as error:
            raise ConfigurationError(f"--data: {path} is not JSON: {error}") from None
        if not isinstance(body, dict) or body.keys() != set(_KEYS):
            raise ConfigurationError(f"--data: {path} must have the keys {', '.join(_KEYS)}, and no others")
        if body["dtype"] not in list(_DTYPES):
            raise ConfigurationError(f"--data: {path}: dtype is {body['dtype']!r}: must be one of {', '.join(_DTYPES)}")
        for name in ("count", "vocab"):
            if type(body[name]) is not int or body[name] < 1:
                raise ConfigurationError(f"--data: {path}: {name} is {body[name]!r}: must be a whole number from 1")
        return cls(**body)


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """All tokens of a training set, in order; those of a file stay there until they are read."""

    tokens: npt.NDArray[Any]
    vocab: int
    name: str


def corpus(path: Path | None, procs: Processes) -> Corpus:
    """What --data names."""
    return token_file(path, procs) if path else bundled_corpus()


def bundled_corpus() -> Corpus:
    """The language reference that every Python carries for its own `help()`, half a megabyte of English, as bytes."""
    text = "\n\n".join(topics.topics.values()).encode()
    return Corpus(tokens=np.frombuffer(text, dtype=np.uint8), vocab=256, name="Python's language reference")


def token_file(path: Path, procs: Processes) -> Corpus:
    """A prepared file, mapped into memory. Rank 0 reads all of it once, for its checksum: a second or so per GB."""
    if path.suffix != ".bin" or not path.exists():
        raise ConfigurationError(f"--data {path}: there is no such .bin file")
    header = Header.read(_header_path(path))
    damage = procs.from_first(_damage(path, header) if procs.is_first else None)
    if damage:
        raise ConfigurationError(f"--data {path}: {damage}; prepare or copy it again")
    return Corpus(tokens=np.memmap(path, dtype=_DTYPES[header.dtype], mode="r"), vocab=header.vocab, name=str(path))


def write_token_file(path: Path, parts: Iterable[npt.ArrayLike], *, vocab: int) -> Header:
    """Write both files; the description comes last, so that half a corpus is none."""
    dtype = "uint16" if vocab <= 2**16 else "uint32"
    _header_path(path).unlink(missing_ok=True)
    digest = hashlib.sha256()
    count = 0
    with path.open("wb") as file:
        for part in parts:
            content = np.asarray(part, dtype=_DTYPES[dtype])
            file.write(content.data)
            digest.update(content.data)
            count += content.size
    header = Header(dtype=dtype, count=count, vocab=vocab, sha256=digest.hexdigest())
    _header_path(path).write_text(json.dumps(asdict(header), indent=1) + "\n")
    return header


class Sequences:
    """A corpus cut into samples of equal length; the last tokens that fill none are left out."""

    def __init__(self, corpus: Corpus, *, length: int, vocab: int) -> None:
        if corpus.vocab > vocab:
            raise ConfigurationError(f"--vocab {vocab} is too small for {corpus.name}: it has {corpus.vocab} tokens")
        # The last input's target is one further.
        self._num_samples = (len(corpus.tokens) - 1) // length
        if self._num_samples < 1:
            raise ConfigurationError(
                f"--sequence {length} is too long for {corpus.name}: it has {len(corpus.tokens)} tokens in all"
            )
        self._corpus = corpus
        self._length = length

    def __len__(self) -> int:
        return self._num_samples

    def batch(self, samples: torch.Tensor, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets, [samples, length] each: a target is the token after its input."""
        places = samples.numpy()[:, None] * self._length + np.arange(self._length + 1)
        tokens = torch.from_numpy(self._corpus.tokens[places].astype(np.int64))
        if device.type == "cuda":
            tokens = tokens.pin_memory()  # without it the copy waits for the GPU
        tokens = tokens.to(device, non_blocking=True)
        return tokens[:, :-1], tokens[:, 1:]


def _header_path(path: Path) -> Path:
    return path.with_suffix(".json")


def _damage(path: Path, header: Header) -> str | None:
    """What is wrong with the tokens; None when they are as described."""
    try:
        size_bytes, expected_bytes = path.stat().st_size, header.count * _DTYPES[header.dtype].itemsize
        if size_bytes != expected_bytes:
            return f"it has {size_bytes} bytes, and {header.count} tokens of {header.dtype} take {expected_bytes}"
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != header.sha256:
                return f"it does not have the checksum that {_header_path(path).name} gives"
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    return None
