"""Runs an experiment on this machine: one node, torchrun over gloo, the platform's volumes as folders.

The program and its flags are those of the cluster; only paths below a volume's mount become paths below
`runs/<stack>/volumes/`. Everything that a run leaves is in `runs/<stack>/`.
"""

import ctypes
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from types import FrameType

from workloads.flags import arguments, program_flags
from workloads.loss_curve import draw_loss_curve
from workloads.memory import GIB, parameters_of
from workloads.programs import PROJECT, flags_of
from workloads.progress import Progress
from workloads.resolve import Run
from workloads.stacks import ExperimentStack

RUNS = PROJECT / "runs"
_RUN_NAME = "local"
# fp32 weights, gradients and Adam's moments; each process holds all of it unless it is sharded.
_STATE_BYTES = 16
_CONFIGURATION_ERROR = 2


@dataclass(frozen=True, kw_only=True)
class LocalRun:
    """Where a local run keeps its things, and how it is started."""

    stack: str
    folder: Path
    checkpoints: Path
    command: list[str]
    environment: dict[str, str]

    @property
    def metrics(self) -> Path:
        return self.checkpoints / self.stack / _RUN_NAME / "metrics.jsonl"


def run_locally(stack: ExperimentStack, *, processes: int | None, steps: int | None, folder: Path | None = None) -> int:
    """Runs the experiment to its end, showing progress; returns the program's exit code."""
    num_processes = processes or _default_processes(stack.run)
    refusal = _too_big(stack.run, num_processes)
    if refusal:
        print(refusal, file=sys.stderr)
        return _CONFIGURATION_ERROR
    run = _prepare(stack, num_processes, steps, (folder or RUNS / stack.file.stack).resolve())
    exit_code = _supervise(run, title=f"{stack.file.stack} on {num_processes} processes")
    _leave_results(run)
    return exit_code


def _prepare(stack: ExperimentStack, num_processes: int, steps: int | None, folder: Path) -> LocalRun:
    experiment = stack.run.experiment
    mounts = {volume.mount.rstrip("/"): folder / "volumes" / volume.name for volume in experiment.volumes}
    for volume in mounts.values():
        volume.mkdir(parents=True, exist_ok=True)
    own_environment = {name: _on_this_machine(value, mounts) for name, value in experiment.env.items()}
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // num_processes)),
        **{name: str(value) for name, value in own_environment.items()},
        "TRAINYARD_STACK": stack.file.stack,
        "TRAINYARD_RUN": _RUN_NAME,
        "PYTHONUNBUFFERED": "1",
    }
    checkpoints = folder / "checkpoints"
    if experiment.module is None:
        assert not isinstance(experiment.program, str)
        return LocalRun(
            stack=stack.file.stack,
            folder=folder,
            checkpoints=checkpoints,
            command=list(experiment.program.command),
            environment=environment,
        )
    flags = {name: _on_this_machine(value, mounts) for name, value in program_flags(experiment).items()}
    if steps is not None:
        flags["steps"] = steps
    if "checkpoint-path" in flags_of(experiment.module):
        checkpoints = Path(str(flags.setdefault("checkpoint-path", str(checkpoints))))
    torchrun = ["--standalone", "--nproc-per-node", str(num_processes)]
    return LocalRun(
        stack=stack.file.stack,
        folder=folder,
        checkpoints=checkpoints,
        command=[sys.executable, "-m", "training.launch", *torchrun, experiment.module, *arguments(flags)],
        environment=environment,
    )


def _on_this_machine(value: object, mounts: dict[str, Path]) -> object:
    """A path below a volume's mount becomes one below the folder that stands for the volume."""
    if isinstance(value, list):
        return [_on_this_machine(item, mounts) for item in value]
    for mount, folder in mounts.items():
        if isinstance(value, str) and (value == mount or value.startswith(f"{mount}/")):
            return f"{folder}{value.removeprefix(mount)}"
    return value


def _default_processes(run: Run) -> int:
    """As many as the experiment has, no more than there are cores, and a divisor of its batch."""
    most = min(run.world_size, os.cpu_count() or 1)
    batch = run.experiment.batch

    def divides(count: int) -> bool:
        return batch is None or batch.global_ % (count * (batch.micro or 1)) == 0

    return next((count for count in range(most, 0, -1) if divides(count)), 1)


def _too_big(run: Run, num_processes: int) -> str | None:
    """Why the model's training state does not fit this machine; None when it does, or its size is not known."""
    model, sharding = run.experiment.model, run.experiment.parallelism.sharding
    parameters = parameters_of(model) if model else None
    if parameters is None:
        return None
    copies = num_processes if sharding == "none" else 1
    needed_gib = parameters * _STATE_BYTES * copies / GIB
    available_gib = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GIB
    if needed_gib < available_gib:
        return None
    return (
        f"error: {copies} copies of the training state of {parameters / 1e9:.1f} billion parameters need "
        f"{needed_gib:.0f} GiB, and this machine has {available_gib:.0f} GiB free\n"
        f"    fix: try a smaller shape here: run {run.stack} --set model.layers=2 --set model.hidden=256 "
        "--set model.heads=4 --set model.kv_heads=4 --set model.sequence=128"
    )


def _supervise(run: LocalRun, title: str) -> int:
    """Starts the program, passes signals on, and shows what it says."""
    process = subprocess.Popen(
        run.command,
        cwd=PROJECT,
        env=run.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        # A session of its own: Ctrl-C reaches the launcher once, through us, and not every rank besides.
        start_new_session=True,
        preexec_fn=_die_with_parent if sys.platform == "linux" else None,
    )

    def stop(number: int, frame: FrameType | None) -> None:
        process.terminate()
        # By a thread: the signal may have come in the middle of a line, and that write cannot be entered again.
        Thread(target=progress.say, args=["stopping: saving a checkpoint first"]).start()

    with Progress(title) as progress:
        previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            assert process.stdout is not None
            for line in process.stdout:
                progress.line(line.rstrip("\n"))
            return process.wait()
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


def _die_with_parent() -> None:
    """Even `kill -9` of this process must not leave a run behind that writes to the same folder as the next."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def _leave_results(run: LocalRun) -> None:
    if not run.metrics.is_file():
        return
    shown = run.folder / "metrics.jsonl"
    shown.unlink(missing_ok=True)
    shown.symlink_to(os.path.relpath(run.metrics, run.folder))
    picture = run.folder / "loss.png"
    if draw_loss_curve(run.metrics, picture, title=run.stack):
        print(f"loss curve: {picture.relative_to(Path.cwd()) if picture.is_relative_to(Path.cwd()) else picture}")
