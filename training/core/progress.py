"""What a run tells the outside: one logfmt line per logged step, and the same keys as JSON in metrics.jsonl.

The file holds each step once and in order, whatever crashed in between: a run that resumes at step N first drops what
its predecessor recorded after N.
"""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Record = dict[str, Any]
"""`step`, and the numbers measured there; None is unknown."""


class Progress:
    """The lines of one run. A full disk is reported once and lived with: it is no reason to stop training."""

    def __init__(self, path: Path | None, *, after_step: int) -> None:
        self._path = path
        self._said = False
        self._last: Record = {}
        self._last_start = self._end = 0
        if path:
            self._guarded(lambda: self._open(path, after_step))

    @property
    def last(self) -> Record:
        """The newest record of this run, or of the one that it continues."""
        return self._last

    def record(self, record: Record) -> None:
        """Append a record, or replace the newest if it is of the same step."""
        if record["step"] == self._last.get("step"):
            self._end = self._last_start
        self._last, self._last_start = record, self._end
        line = (json.dumps({key: _finite(value) for key, value in record.items()}) + "\n").encode()
        if self._path:
            path = self._path
            self._guarded(lambda: self._write(path, line))

    def show(self, record: Record) -> None:
        print(" ".join(f"{key}={_text(value)}" for key, value in record.items()), flush=True)

    def _open(self, path: Path, after_step: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        records = [(line, record) for line in lines if (record := _parsed(line)) and record["step"] <= after_step]
        kept = [line for line, _ in records]
        if kept != lines:
            temporary = path.with_suffix(".tmp")
            temporary.write_bytes(b"".join(kept))
            temporary.replace(path)
        self._end = sum(map(len, kept))
        if records:
            self._last = records[-1][1]
            self._last_start = self._end - len(kept[-1])

    def _write(self, path: Path, line: bytes) -> None:
        with path.open("r+b" if path.exists() else "wb") as file:
            file.truncate(self._end)  # a line that a full disk cut short, or the record that this one replaces
            file.seek(self._end)
            file.write(line)
        self._end += len(line)

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except OSError as error:
            if not self._said:
                print(f"metrics are not recorded: {self._path}: {error.strerror}; training goes on", file=sys.stderr)
            self._said = True


def _parsed(line: bytes) -> Record | None:
    """A record; None for a line that was cut short."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if line.endswith(b"\n") and isinstance(record, dict) and "step" in record else None


def _finite(value: float | None) -> float | None:
    """JSON knows no NaN."""
    return value if value is None or math.isfinite(value) else None


def _text(value: float | None) -> str:
    if value is None:
        return "null"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
