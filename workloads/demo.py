"""`make demo`: three minutes from nothing to a trained model, a resumed run, a loss curve and every stack's plan."""

import shutil
import subprocess
import sys
from collections.abc import Sequence

from rich.console import Console

from workloads.local import RUNS
from workloads.programs import PROJECT
from workloads.stacks import stack_files, stack_name

_STACK = "mnist"
_FOLDER = RUNS / "demo"
_FIRST_STEPS = 200  # half of the stack's 400: the second run has as much left to do

_console = Console(highlight=False, soft_wrap=True)


def main() -> int:
    """Each part is a command that the reader can type, shown before it runs."""
    shutil.rmtree(_FOLDER, ignore_errors=True)
    folder = ["--folder", str(_FOLDER.relative_to(PROJECT))]
    parts: list[tuple[str, list[list[str]]]] = [
        (
            "train a digit classifier: 2 processes, gloo, half of the steps",
            [["run", _STACK, "--steps", str(_FIRST_STEPS), *folder]],
        ),
        ("the same command again resumes from the checkpoint", [["run", _STACK, *folder]]),
        ("check every stack, offline", [["check"]]),
        ("what `pulumi up` would create", [["plan", stack_name(path)] for path in stack_files()]),
    ]
    for number, (title, commands) in enumerate(parts, start=1):
        _console.print(f"\n[bold]{number}/{len(parts)}  {title}[/bold]")
        for words in commands:
            exit_code = _verb(words)
            if exit_code:
                return exit_code
    _console.print(
        f"\n[bold]Done.[/bold] Two processes trained a model, stopped half-way and resumed from the checkpoint; then\n"
        f"every stack of the repository was checked and planned, without a cluster or an account.\n"
        f"  see    {_FOLDER.relative_to(PROJECT)}/loss.png\n"
        f"  try    python -m workloads check fsdp --set nodes=3      what a mistake looks like\n"
        f"  make   cp Pulumi.mnist.yaml Pulumi.mine.yaml             your own experiment, then: run mine\n"
        f"  read   README.md                                         the other verbs, and the cluster",
        markup=True,
    )
    return 0


def _verb(words: Sequence[str]) -> int:
    _console.print(f"[dim]$ python -m workloads {' '.join(words)}[/dim]")
    return subprocess.run([sys.executable, "-m", "workloads", *words], cwd=PROJECT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
