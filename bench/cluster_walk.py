"""How long the walk of docs/cluster.md takes on this machine, step by step, from a cluster that is down.

    python bench/cluster_walk.py       writes bench/results/cluster_walk.json and .png

The promise: under three minutes up to the end of two experiments, when the tools and images are built already.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
RESULTS = PROJECT / "bench" / "results"
sys.path.insert(0, str(PROJECT))

from tests.cluster import toolchain  # noqa: E402
from tests.cluster.experiments import until_succeeded  # noqa: E402
from tests.cluster.pulumi_cli import Checkout  # noqa: E402

_EXPERIMENTS = ("mnist", "mnist-indexed")


def main() -> None:
    _cluster("prepare")  # what is cold is another figure
    _cluster("down")
    os.environ["PATH"] = os.pathsep.join(map(str, [*toolchain.command_folders(), os.environ["PATH"]]))
    seconds: dict[str, float] = {}

    def timed(step: str, action: Callable[[], object]) -> None:
        start = time.perf_counter()
        action()
        seconds[step] = round(time.perf_counter() - start, 1)
        print(f"{seconds[step]:7.1f} s  {step}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        timed("make cluster", lambda: _cluster("up"))
        checkout = Checkout.make(Path(folder) / "checkout", Path(folder) / "backend")
        timed("up -s local", lambda: checkout.up("local"))
        for stack in _EXPERIMENTS:
            timed(f"up -s {stack}", lambda stack=stack: checkout.up(stack))  # type: ignore[misc]
            timed(f"{stack} trains", lambda stack=stack: until_succeeded(checkout.outputs(stack)["run"]))  # type: ignore[misc]
        walk = sum(seconds.values())
        timed("up -s local, again", lambda: checkout.up("local"))
        timed("destroy all", lambda: [checkout.destroy(stack) for stack in (*_EXPERIMENTS, "local")])
        timed("make cluster-down", lambda: _cluster("down"))
    result = {
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "to_the_end_of_two_experiments_s": round(walk, 1),
        "seconds": seconds,
    }
    (RESULTS / "cluster_walk.json").write_text(json.dumps(result, indent=2) + "\n")
    _draw(seconds)
    print(json.dumps(result, indent=2))


def _cluster(verb: str) -> None:
    subprocess.run([sys.executable, "-m", "tests.cluster", verb], cwd=PROJECT, check=True)


def _draw(seconds: dict[str, float]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 3.2), dpi=120, layout="constrained")
    start = 0.0
    for step, duration in seconds.items():
        axes.barh(step, duration, left=start, color="#2f6fb3")
        start += duration
    axes.axvline(180, color="#b33a2f", linewidth=1, linestyle="--", label="the promise, for two experiments")
    axes.set(xlabel="seconds since the start")
    axes.invert_yaxis()
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(RESULTS / "cluster_walk.png")


if __name__ == "__main__":
    main()
