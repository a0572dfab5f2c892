"""Live progress of a run, from the lines that rank 0 prints."""

import re
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

_RANK_PREFIX = re.compile(r"^\[[^\]]*\]:")  # torchrun's, when it is told to mark lines
_PAIR = re.compile(r'(\w+)=("[^"]*"|\S+)')


def parse_line(line: str) -> dict[str, str] | None:
    """The pairs of a progress line; None for any other line."""
    text = _RANK_PREFIX.sub("", line).strip()
    if not text.startswith("step="):
        return None
    return dict(_PAIR.findall(text))


class Progress:
    """A bar on a terminal; elsewhere the lines themselves, as a log wants them."""

    def __init__(self, title: str) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._bar = Bar(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=None, figures="starting")

    def __enter__(self) -> "Progress":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        self._console.print(text, markup=False)

    def line(self, line: str) -> None:
        """Shows one line of the program's output."""
        pairs = parse_line(line)
        if pairs is None or not self._console.is_terminal:
            self.say(line)
        if pairs is not None:
            self._bar.update(
                self._task,
                completed=int(pairs["step"]),
                total=int(pairs["steps"]),
                figures=_figures(pairs),
            )


def _figures(pairs: dict[str, str]) -> str:
    """Loss, throughput, time left, and whatever quality the program reports."""
    shown = [f"loss {float(pairs['loss']):.4f}"] if pairs.get("loss", "null") != "null" else []
    for key, unit in (("samples_per_s", "samples/s"), ("tokens_per_s", "tokens/s")):
        if pairs.get(key, "null") != "null":
            shown.append(f"{float(pairs[key]):,.0f} {unit}")
    if pairs.get("eta_s", "null") != "null":
        minutes, seconds = divmod(round(float(pairs["eta_s"])), 60)
        shown.append(f"{minutes}:{seconds:02} left")
    if pairs.get("accuracy", "null") != "null":
        shown.append(f"accuracy {float(pairs['accuracy']):.1%}")
    return "  ".join(shown)
