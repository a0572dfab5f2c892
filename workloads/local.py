"""Runs an experiment on this machine: as one node, over gloo or its like, with the platform's volumes as folders.

torchrun starts the processes, or each starts as a pod of its launcher does. The program and its flags are those of the
cluster; only paths below a volume's mount become paths below `runs/<stack>/volumes/`. All that a run leaves is in
`runs/<stack>/`.
"""

import os
import socket
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from workloads.flags import arguments, program_flags
from workloads.image_sources import image_names, requirements_of
from workloads.launchers.registry import LAUNCHERS
from workloads.loss_curve import draw_loss_curve
from workloads.memory import GIB, parameters_of, state_bytes
from workloads.programs import PROJECT, flags_of
from workloads.resolve import Run
from workloads.stacks import ExperimentStack
from workloads.supervise import supervise

RUNS = PROJECT / "runs"
_RUN_NAME = "local"
_CONFIGURATION_ERROR = 2
# What requirements.txt installs into the project's own environment.
_OWN_REQUIREMENTS = "training"


@dataclass(frozen=True, kw_only=True)
class LocalRun:
    """Where a local run keeps its things, and how it is started."""

    stack: str
    folder: Path
    checkpoints: Path
    command: list[str]
    environments: list[dict[str, str]]
    """One for each process that is started with the command."""

    @property
    def metrics(self) -> Path:
        return self.checkpoints / self.stack / _RUN_NAME / "metrics.jsonl"


def run_locally(stack: ExperimentStack, *, processes: int | None, steps: int | None, folder: Path | None = None) -> int:
    """Runs the experiment to its end, showing progress; returns the program's exit code."""
    num_processes = processes or _default_processes(stack.run)
    refusal = _too_big(stack.run, num_processes) or _not_installed(stack.run)
    if refusal:
        print(refusal, file=sys.stderr)
        return _CONFIGURATION_ERROR
    run = _prepare(stack, num_processes, steps, (folder or RUNS / stack.file.stack).resolve())
    title = f"{stack.file.stack} on {num_processes} processes"
    exit_code = supervise(run.command, run.environments, folder=PROJECT, title=title)
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
            environments=[environment],
        )
    flags = {name: _on_this_machine(value, mounts) for name, value in program_flags(experiment).items()}
    if steps is not None:
        flags["steps"] = steps
    if "checkpoint-path" in flags_of(experiment.module):
        checkpoints = Path(str(flags.setdefault("checkpoint-path", str(checkpoints))))
    venv = _environment_of(stack.run)
    python = str(venv / "bin" / "python") if venv else sys.executable
    kind = LAUNCHERS[experiment.launcher]
    if kind.local_variables:
        starter, own_variables = ["training.solo"], kind.local_variables(_free_ports(num_processes))
    else:
        starter = ["training.launch", "--standalone", "--nproc-per-node", str(num_processes)]
        own_variables = [{}]
    return LocalRun(
        stack=stack.file.stack,
        folder=folder,
        checkpoints=checkpoints,
        command=[python, "-m", *starter, experiment.module, *arguments(flags)],
        environments=[{**environment, **variables} for variables in own_variables],
    )


def _free_ports(count: int) -> list[int]:
    """Ports of this machine, so that two runs at a time do not take each other's processes for their own."""
    with ExitStack() as held:
        return [held.enter_context(socket.create_server(("localhost", 0))).getsockname()[1] for _ in range(count)]


def _environment_of(run: Run) -> Path | None:
    """The virtual environment with the libraries of the run's image; None: those of the core, which are here."""
    image = run.experiment.image
    requirements = requirements_of(image) if image in image_names() else _OWN_REQUIREMENTS
    return None if requirements == _OWN_REQUIREMENTS else PROJECT / ".venvs" / requirements


def _not_installed(run: Run) -> str | None:
    """Why the program's libraries are not there; None when they are."""
    venv = _environment_of(run)
    if run.experiment.module is None or venv is None or (venv / "installed").exists():
        return None
    name = venv.relative_to(PROJECT)
    return (
        f"error: image `{run.experiment.image}` has libraries of its own, and {name} with them is not made yet\n"
        f"    fix: make {name}/installed"
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
    needed_gib = parameters * state_bytes(sharding, shards=num_processes) * num_processes / GIB
    available_gib = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GIB
    if needed_gib < available_gib:
        return None
    return (
        f"error: the training state of {parameters / 1e9:.1f} billion parameters on {num_processes} processes needs "
        f"{needed_gib:.0f} GiB, and this machine has {available_gib:.0f} GiB free\n"
        f"    fix: try a smaller shape here: run {run.stack} --set model.layers=2 --set model.hidden=256 "
        "--set model.heads=4 --set model.kv_heads=4 --set model.sequence=128"
    )


def _leave_results(run: LocalRun) -> None:
    if not run.metrics.is_file():
        return
    shown = run.folder / "metrics.jsonl"
    shown.unlink(missing_ok=True)
    shown.symlink_to(os.path.relpath(run.metrics, run.folder))
    picture = run.folder / "loss.png"
    if draw_loss_curve(run.metrics, picture, title=run.stack):
        print(f"loss curve: {picture.relative_to(Path.cwd()) if picture.is_relative_to(Path.cwd()) else picture}")
