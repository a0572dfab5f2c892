"""Start a program on every slot of an MPIJob: mpirun, with exit codes that an operator can act on.

    python -m training.mpi launch MODULE [module arguments]    in the launcher's pod
    python -m training.mpi serve                               in each worker's pod
    python -m training.mpi rank MODULE [module arguments]      how `launch` starts each rank

The hosts are those of the file that the MPI operator mounts. The exit code is training.launch's: 0 done, 2 the
configuration is wrong, 143 stopped as asked after saving, 138 crashed.
"""

import sys

from training.core import mpi_launcher, mpi_rank, mpi_worker
from training.core.exits import CONFIGURATION

if __name__ == "__main__":
    match sys.argv[1:]:
        case ["launch", module, *arguments]:
            sys.exit(mpi_launcher.launch(module, arguments))
        case ["serve"]:
            sys.exit(mpi_worker.serve())
        case ["rank", module, *arguments]:
            mpi_rank.run(module, arguments)
        case _:
            print(__doc__, file=sys.stderr)
            sys.exit(CONFIGURATION)
