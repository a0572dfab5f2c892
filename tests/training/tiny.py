"""The smallest program on training/core, which can hurt itself at a chosen step: what the fault tests start."""

import os
import resource
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import nn

from training.core import loop
from training.core.manifest import Manifest
from training.core.process import processes
from training.core.program import start
from training.core.replicas import replicate
from training.core.settings import RunSettings

NUM_SAMPLES = 30

Fault = Literal[
    "raise", "kill", "stop", "stop-launcher", "stop-launcher-in-save", "kill-launcher", "kill-in-save", "sleep"
]


@dataclass(frozen=True, kw_only=True)
class Settings(RunSettings):
    """Flags of this program."""

    steps: int = 12
    global_batch: int = 4
    log_every_steps: int = 1
    checkpoint_every_steps: int = 3
    width: int = 3
    step_s: float = 0
    """Length of a step; the ranks ask each other at every one only if it is no shorter than a tenth of a second."""
    seen: Path | None = None
    """File prefix: each rank notes there which samples it took."""
    fault: Fault | None = None
    fault_step: int = 8
    """0 is before the first step, once the run is set up."""
    fault_rank: int = 1
    stuck_rank: int | None = None
    """Hangs in that step."""
    disk_full_at_step: int | None = None
    started: Path | None = None
    """Touched when the fault is due."""


def main(settings: Settings) -> None:
    with processes() as procs:
        torch.manual_seed(settings.seed + procs.rank)
        # Dropout makes the loss depend on each rank's random numbers, and Adam's moments on all steps before.
        net = nn.Sequential(nn.Linear(settings.width, 8), nn.Dropout(), nn.Linear(8, 1))
        inputs = torch.linspace(-1, 1, NUM_SAMPLES * settings.width).reshape(NUM_SAMPLES, settings.width)
        model = replicate(net, inputs[:1])
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

        run = loop.Run(settings, procs, model=model, optimizer=optimizer, num_samples=NUM_SAMPLES)
        torch.rand(3)  # must not shift the random numbers of a resumed run
        due = settings.fault is not None and procs.rank == settings.fault_rank
        if due and settings.fault_step == 0:
            hurt(settings)
        for step in run.steps():
            if step == settings.disk_full_at_step and procs.is_first:
                resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
            if due and step == settings.fault_step:
                hurt(settings)
            if step == settings.fault_step and procs.rank == settings.stuck_rank:
                time.sleep(600)
            time.sleep(settings.step_s)
            total = torch.zeros(())
            for micro in run.micro_batches():
                model.require_backward_grad_sync = micro.is_last
                loss = (model(inputs[micro.samples]) - 1).square().mean() * micro.weight
                loss.backward()
                total += loss.detach()
                if settings.seen:
                    with settings.seen.with_suffix(f".{procs.rank}").open("a") as file:
                        file.writelines(f"{step} {sample}\n" for sample in micro.samples.tolist())
            optimizer.step()
            optimizer.zero_grad()
            run.log(total)
        run.finish(done=1)


def hurt(settings: Settings) -> None:
    if settings.started:
        settings.started.touch()
    match settings.fault:
        case "raise":
            raise ValueError("this rank was told to fail")
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGTERM)
        case "stop-launcher":
            os.kill(os.getppid(), signal.SIGTERM)
            time.sleep(0.5)  # until it has passed the signal on
        case "kill-launcher":
            launcher = os.getppid()
            os.kill(launcher, signal.SIGKILL)
            while os.getppid() == launcher:
                time.sleep(0.01)
        case "stop-launcher-in-save":
            before_manifest(lambda: (os.kill(os.getppid(), signal.SIGTERM), time.sleep(0.5)))
        case "kill-in-save":
            before_manifest(lambda: os.kill(os.getpid(), signal.SIGKILL))
        case "sleep":
            time.sleep(600)


def before_manifest(action) -> None:
    """Do it when everything of the next checkpoint is written but its manifest; on rank 0, which writes that."""
    write = Manifest.write

    def hurt_and_write(manifest: Manifest, folder: Path) -> None:
        action()
        write(manifest, folder)

    Manifest.write = hurt_and_write


if __name__ == "__main__":
    start(main, Settings)
