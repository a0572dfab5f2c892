"""TY6xx: whether the platform, the image and the program have what the launcher's kind of job needs."""

from collections.abc import Iterator

from infra.findings import listed
from workloads.checks.registry import Problem, rule
from workloads.image_sources import dockerfile_of, image_names, libraries_in
from workloads.launchers.registry import LAUNCHERS
from workloads.launchers.torchx_job import meets_in_etcd
from workloads.programs import libraries_of
from workloads.resolve import Run

_RANK_VARIABLES = {
    *("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"),
    *("NODE_RANK", "JOB_COMPLETION_INDEX", "VC_TASK_INDEX", "VK_TASK_INDEX", "TF_CONFIG"),
    *("PADDLE_MASTER", "PADDLE_NNODES", "PADDLE_RANK", "PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"),
}
# Debian's, as the Dockerfiles name it.
_MPI_PACKAGE = "openmpi-bin"
# What torchrun talks to etcd with, as the Dockerfiles copy it.
_ETCD_CLIENT = "training/requirements/etcd.txt"
_OPERATORS = {
    "volcano": "Volcano",
    "training": "Training Operator",
    "mpi": "MPI operator",
    "trainer_v2": "Kubeflow Trainer",
}


@rule("TY601")
def rank_variables_are_the_launchers(run: Run) -> Iterator[Problem]:
    """`env` sets a variable that the launcher or torchrun sets for each pod by itself.

    The same value in every pod makes two rank 0s, or a master that nobody answers for.
    """
    for name in run.experiment.env:
        if name in _RANK_VARIABLES or name.startswith(("PET_", "OMPI_COMM_", "TRAINYARD_")):
            yield Problem(("env", name), f"{name} is set for each pod by the launcher", "drop it")


@rule("TY602")
def operator_is_installed(run: Run) -> Iterator[Problem]:
    """The platform lacks the operator, or the operator the scheme, that the launcher's job kind needs.

    The API server would refuse the object, or accept it with nobody there to start it.
    """
    kind = LAUNCHERS[run.experiment.launcher]
    operators = run.platform.operators
    if kind.operator is None:
        return
    name, installed = _OPERATORS[kind.operator], getattr(operators, kind.operator)
    if installed is None or not getattr(installed, "enabled", True):
        message = f"platform `{run.experiment.platform}` installs no {name}"
        add = f"add `operators.{kind.operator}` to the platform, or use `indexed-job`"
        yield Problem(("launcher",), message, add if installed is None else f"set `operators.{kind.operator}.enabled`")
    elif kind.scheme and kind.scheme not in installed.schemes:
        message = f"the platform's {name} does not serve the kind `{kind.scheme}`"
        yield Problem(("launcher",), message, f"add {kind.scheme} to `operators.training.schemes` of the platform")


@rule("TY604", "info")
def time_limit_covers_all_starts(run: Run) -> Iterator[Problem]:
    """The time limit counts from the last start of the pods, so that a run with restarts may last longer.

    A Volcano Job and a TrainJob have no deadline of their own: each start of their pods gets `max_hours`. The other
    launchers hold it over all starts, and over the wait for nodes.
    """
    hours, starts = run.experiment.max_hours, run.num_time_limits
    if hours and starts > 1:
        yield Problem(
            ("max_hours",),
            f"up to {starts} starts of {hours:g} hours, {run.most_hours:g} in all",
            "set `restarts: 0`, or use `pytorch-job` or `indexed-job`, for a limit over all of them",
        )


@rule("TY605")
def image_has_mpi(run: Run) -> Iterator[Problem]:
    """`mpi-job` with an image of ours that holds neither Open MPI nor an ssh server.

    Its workers would end at once, be started again without end, and no launcher would ever be made.
    """
    image = run.experiment.image
    if run.experiment.launcher == "mpi-job" and image in image_names():
        with_mpi = [name for name in image_names() if _MPI_PACKAGE in dockerfile_of(name).read_text()]
        if image not in with_mpi:
            yield Problem(("image",), f"image `{image}` holds no Open MPI", f"use one that does: {listed(with_mpi)}")


@rule("TY606")
def elasticity_is_possible(run: Run) -> Iterator[Problem]:
    """`elastic` with a launcher whose pods are all needed, around another number of `nodes`, or without a checkpoint.

    The ranks start anew, from the last checkpoint, whenever a pod comes or goes.
    """
    experiment, elastic = run.experiment, run.experiment.elastic
    if elastic is None:
        return
    if not LAUNCHERS[experiment.launcher].is_elastic:
        able = listed([f"`{name}`" for name, kind in LAUNCHERS.items() if kind.is_elastic])
        yield Problem(("elastic",), f"`{experiment.launcher}` needs every pod of the gang", f"drop it, or use {able}")
    elif not elastic.min <= experiment.nodes <= elastic.max:
        message = f"`nodes` is {experiment.nodes}, outside {elastic.min} to {elastic.max}"
        yield Problem(("nodes",), message, "start with a number of pods that the run may continue with")
    elif experiment.checkpoint is None or not experiment.checkpoint.resume:
        message = "without a checkpoint to resume from, all steps are lost when a pod comes or goes"
        yield Problem(("elastic",), message, "add `checkpoint` with a path on a shared volume, and `resume`")


@rule("TY607")
def one_process_per_pod(run: Run) -> Iterator[Problem]:
    """A launcher that starts one process per pod, with more of them in `processes_per_node`.

    Its processes find each other without torchrun, and nothing in the pod would start the others. One process uses all
    accelerators of its pod where its library can; otherwise give each pod one.
    """
    if LAUNCHERS[run.experiment.launcher].starts == "itself" and run.processes_per_node != 1:
        yield Problem(
            ("processes_per_node",),
            f"`{run.experiment.launcher}` starts one process per pod, not {run.processes_per_node}",
            "set `processes_per_node: 1`, and more `nodes` for more processes",
        )


@rule("TY608")
def pods_can_meet(run: Run) -> Iterator[Problem]:
    """`rendezvous` names a meeting place that the run cannot have.

    etcd must be on the platform and its client in the image; other launchers than `torchx` have a rendezvous of their
    own. The pods would start, fail to meet, and be started again until `restarts` is used up.
    """
    experiment = run.experiment
    if experiment.launcher != "torchx":
        if "rendezvous" in experiment.model_fields_set:
            message = f"`{experiment.launcher}` has a rendezvous of its own"
            yield Problem(("rendezvous",), message, "drop it, or use `torchx`")
    elif experiment.rendezvous == "etcd" and not run.platform.operators.etcd.enabled:
        message = f"platform `{experiment.platform}` has no etcd"
        yield Problem(("rendezvous",), message, "set `operators.etcd.enabled: true` there, or use `c10d`")
    elif meets_in_etcd(run) and experiment.image in image_names():
        with_client = [name for name in image_names() if _ETCD_CLIENT in dockerfile_of(name).read_text()]
        if experiment.image not in with_client:
            message = f"image `{experiment.image}` holds no client of etcd"
            yield Problem(("image",), message, f"use one that does ({listed(with_client)}), or `rendezvous: c10d`")


@rule("TY609")
def image_has_the_programs_library(run: Run) -> Iterator[Problem]:
    """A program of training/ on an image of ours without the library that it trains with.

    Its pods would be pulled and started on every node, to end at the first import.
    """
    image, module = run.experiment.image, run.experiment.module
    if module is None or image not in image_names():
        return
    needed = libraries_of(module)
    if missing := sorted(needed - libraries_in(image)):
        able = [f"`{name}`" for name in image_names() if needed <= libraries_in(name)]
        yield Problem(
            ("image",), f"image `{image}` holds no {listed(missing)}, which {module} needs", f"use {listed(able)}"
        )


@rule("TY613", "info")
def failing_runs_end(run: Run) -> Iterator[Problem]:
    """A run that always fails, on a launcher that starts it again without counting.

    The Training Operator (1.8) asks a work queue that always answers 0 how often a job was started. `restarts: 0` and
    `max_hours` are kept.
    """
    experiment = run.experiment
    if LAUNCHERS[experiment.launcher].operator == "training" and experiment.restarts and not experiment.max_hours:
        message = f"`{experiment.launcher}` counts no starts: a run that always fails goes on until it is deleted"
        yield Problem(("restarts",), message, "set `max_hours`, or `restarts: 0`")
