"""What training/core's loop costs: training.ddp against the plainest DDP loop, in steps per second.

Both train the same model on batches of the same size in the same processes, by turns. Ours also decides whether to
stop, keeps the data order, and records metrics; checkpoints fall outside the time measured. A progress line is the
clock: the time of a turn is that from its first line to its last but one, so warming up and the final save are left
out, and what the lines themselves cost is not.

    python -m training.launch --nproc-per-node 2 bench.loop_overhead --output runs/bench

It takes two minutes on two CPU cores and writes loop_overhead.json and .png. Target: a ratio of at least 0.98.
"""

import contextlib
import dataclasses
import io
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from training import ddp
from training.core.adamw import adamw, set_learning_rate
from training.core.process import Processes, processes
from training.core.program import start
from training.core.tokens import Sequences, bundled_corpus
from training.core.transformer import Transformer, initialise, next_token_loss

TARGET = 0.98


@dataclass(frozen=True, kw_only=True)
class Settings(ddp.Settings):
    """Flags of this measurement: those of training.ddp, and its own."""

    steps: int = 40
    """Steps of one turn."""

    global_batch: int = 8
    """Samples of one step; few of them, so that the loop's own cost shows."""

    repeats: int = 15
    """Turns of each loop."""

    output: Path = Path("runs/bench")
    """Folder for the results."""


def main(settings: Settings) -> None:
    loops = {"ours": ddp.train, "plain": train_plainly}
    rates: dict[str, list[float]] = {name: [] for name in loops}
    with processes() as procs, tempfile.TemporaryDirectory() as scratch:
        for repeat in range(settings.repeats):
            # A fresh folder for each turn of ours, and the one that went first goes second the next time.
            folder = procs.from_first(Path(scratch) / str(repeat))
            turn = dataclasses.replace(settings, checkpoint_path=folder, checkpoint_every_steps=settings.steps)
            for name in list(loops)[:: 1 if repeat % 2 else -1]:
                rates[name].append(steps_per_s(loops[name], turn, procs))
        if procs.is_first:
            report(rates, settings, procs)


def train_plainly(settings: Settings, procs: Processes) -> None:
    """The same mathematics as training.ddp, in as few lines as PyTorch needs."""
    sequences = Sequences(bundled_corpus(), length=settings.sequence, vocab=settings.vocab)
    transformer = Transformer(settings.shape).to(procs.device)
    initialise(transformer, seed=settings.seed)
    model = DistributedDataParallel(transformer, gradient_as_bucket_view=True)
    optimizer = adamw(model, settings)
    order = torch.randperm(len(sequences), generator=torch.Generator().manual_seed(settings.seed))
    order = order.split(settings.global_batch // procs.world_size)
    for step in range(1, settings.steps + 1):
        share = order[(step * procs.world_size + procs.rank) % (len(order) - 1)]
        inputs, targets = sequences.batch(share, procs.device)
        loss = next_token_loss(model(inputs), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), settings.clip_grad)
        set_learning_rate(optimizer, step, settings)
        optimizer.step()
        optimizer.zero_grad()
        if step % settings.log_every_steps == 0 and procs.is_first:
            print(f"step={step} loss={loss.item():.4f}", flush=True)


class Clock(io.TextIOBase):
    """Takes standard output's place, and notes when each progress line comes."""

    def __init__(self) -> None:
        self.times_s: list[float] = []

    def write(self, text: str) -> int:
        if text.startswith("step="):
            self.times_s.append(time.perf_counter())
        return len(text)


def steps_per_s(train: Callable[[Settings, Processes], None], settings: Settings, procs: Processes) -> float:
    """Of one turn, as rank 0 sees it; the other ranks print nothing, and have none."""
    with contextlib.redirect_stdout(Clock()) as clock:
        train(settings, procs)
    times_s = clock.times_s[:-1]  # ours prints the last line after its last save
    return (len(times_s) - 1) * settings.log_every_steps / (times_s[-1] - times_s[0]) if procs.is_first else 0.0


def report(rates: dict[str, list[float]], settings: Settings, procs: Processes) -> None:
    ratios = [ours / plain for ours, plain in zip(rates["ours"], rates["plain"], strict=True)]
    result = {
        "benchmark": "loop_overhead",
        "ratio": summary(ratios),
        "target": TARGET,
        "steps_per_s": {name: summary(values) for name, values in rates.items()},
        "setup": {
            "processes": procs.world_size,
            "threads_per_process": torch.get_num_threads(),
            "device": str(procs.device.type),
            "cores": os.cpu_count(),
            "machine": platform.machine(),
            "torch": torch.__version__,
            "steps_per_turn": settings.steps,
            "global_batch": settings.global_batch,
            "shape": dataclasses.asdict(settings.shape),
        },
    }
    settings.output.mkdir(parents=True, exist_ok=True)
    text = json.dumps(result, indent=1)
    (settings.output / "loop_overhead.json").write_text(text + "\n")
    draw(ratios, settings.output / "loop_overhead.png")
    print(text)


def summary(values: list[float]) -> dict[str, float | list[float]]:
    first_quartile, median, third_quartile = (round(cut, 4) for cut in statistics.quantiles(values, n=4))
    return {"median": median, "iqr": [first_quartile, third_quartile], "values": [round(value, 4) for value in values]}


def draw(ratios: list[float], path: Path) -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot  # after the choice above, which it acts on

    figure, axes = pyplot.subplots(figsize=(6, 2))
    axes.boxplot(ratios, orientation="horizontal", whis=(0, 100))
    axes.axvline(TARGET, linestyle="--", color="grey", label=f"target {TARGET}")
    axes.set(yticks=[], xlabel="speed of training.ddp ÷ speed of the plainest DDP loop")
    axes.legend()
    figure.savefig(path, dpi=150, bbox_inches="tight")


if __name__ == "__main__":
    start(main, Settings)
