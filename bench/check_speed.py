"""How long `check` takes on every stack of the repository, beside a bare interpreter with the same libraries.

    python bench/check_speed.py        writes bench/results/check_speed.json and .png

The promise: under two seconds, every stack together.
"""

import json
import platform
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from statistics import median, quantiles

PROJECT = Path(__file__).resolve().parent.parent
RESULTS = PROJECT / "bench" / "results"
_REPEATS = 7
_COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "its libraries alone": [sys.executable, "-c", "import pydantic, rich.table, typer, yaml"],
    "check, one stack": [sys.executable, "-m", "workloads", "check", "mnist"],
    "check, every stack": [sys.executable, "-m", "workloads", "check"],
}


def main() -> None:
    seconds: dict[str, list[float]] = {name: [] for name in _COMMANDS}
    for _ in range(_REPEATS):  # interleaved, so that a slow minute of the machine slows all alike
        for name, command in _COMMANDS.items():
            start = time.perf_counter()
            subprocess.run(command, cwd=PROJECT, capture_output=True, check=False)
            seconds[name].append(time.perf_counter() - start)
    result = {
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {platform.python_implementation()} {platform.python_version()}",
        "num_stacks": len(list(PROJECT.glob("Pulumi.*.yaml"))),
        "seconds": {name: _summary(times) for name, times in seconds.items()},
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "check_speed.json").write_text(json.dumps(result, indent=2) + "\n")
    _draw(seconds)
    print(json.dumps(result, indent=2))


def _summary(times: list[float]) -> dict[str, float]:
    low, _, high = quantiles(times, n=4)
    return {"median": round(median(times), 3), "q1": round(low, 3), "q3": round(high, 3)}


def _draw(seconds: dict[str, list[float]]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 2.6), dpi=120, layout="constrained")
    axes.barh(list(seconds), [median(times) for times in seconds.values()], color="#2f6fb3")
    axes.axvline(2, color="#b33a2f", linewidth=1, linestyle="--", label="the promise")
    axes.set(xlabel="seconds, median")
    axes.invert_yaxis()
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(RESULTS / "check_speed.png")


if __name__ == "__main__":
    main()
