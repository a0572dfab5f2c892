"""Makes the README's pictures by running the commands they show: `make pictures`.

A command runs on a pseudo-terminal, and what it leaves on the screen is drawn as SVG; the loss curve is that of a run.
"""

import io
import os
import pty
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

PROJECT = Path(__file__).resolve().parent.parent
IMAGES = PROJECT / "docs" / "images"
_COLUMNS = 118


def main() -> None:
    folder = PROJECT / "runs" / "picture"
    shutil.rmtree(folder, ignore_errors=True)
    capture("run", "run", "mnist", "--folder", str(folder.relative_to(PROJECT)))
    shutil.copyfile(folder / "loss.png", IMAGES / "loss.png")
    capture("check", "check")
    capture("mistake", "check", "fsdp", "--set", "nodes=3", "--set", "resources.efa=8", "--set", "precision=fp8")


def capture(name: str, *words: str) -> None:
    """Runs a verb and draws its screen."""
    title = f"python -m workloads {shlex.join(words)}"
    lines = screen(run_on_terminal([sys.executable, "-m", "workloads", *words]))
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), highlight=False)
    console.print(Text(f"$ {title}", style="bold"))
    for line in lines:
        console.print(Text.from_ansi(line))
    path = IMAGES / f"{name}.svg"
    console.save_svg(str(path), title="Trainyard")
    print(path.relative_to(PROJECT))


def run_on_terminal(command: list[str]) -> str:
    """Everything that the command wrote to a terminal of our width, control sequences included."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(_COLUMNS), "LINES": "60"}
    process = subprocess.Popen(command, cwd=PROJECT, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    written = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the terminal closes with its last writer
            break
        if not chunk:
            break
        written += chunk
    process.wait()
    return written.decode()


def screen(written: str) -> list[str]:
    """What is left to see: a line that was rewritten shows its last state."""
    lines = [line.rpartition("\x1b[2K")[2] for line in written.replace("\r\n", "\n").split("\n")]
    lines = [line.rpartition("\r")[2].replace("\x1b[?25l", "").replace("\x1b[?25h", "") for line in lines]
    return [line for index, line in enumerate(lines) if line.strip() or index < len(lines) - 1]


if __name__ == "__main__":
    main()
