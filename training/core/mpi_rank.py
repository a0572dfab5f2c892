"""One rank under mpirun: the variables that torchrun would set, and mpirun's stop signal as the usual one."""

import os
import runpy
import signal
import sys

from training.core.mpi_launcher import STOP_SIGNAL

# What torch and the libraries on it read. MASTER_ADDR is the job's, and set for all.
_VARIABLES = {
    "RANK": "OMPI_COMM_WORLD_RANK",
    "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE",
    "LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK",
    "LOCAL_WORLD_SIZE": "OMPI_COMM_WORLD_LOCAL_SIZE",
}


def run(module: str, arguments: list[str]) -> None:
    """Become the program: `python -m MODULE`, in this process."""
    signal.signal(STOP_SIGNAL, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    os.environ.update({name: os.environ[source] for name, source in _VARIABLES.items()})
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)
