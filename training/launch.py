"""Start a program on every process of this node: torchrun, with exit codes that an operator can act on.

    python -m training.launch [torchrun options] MODULE [module arguments]

torchrun's options and PET_* variables apply; MODULE is a module's name. The exit code is
    0    done
    2    the configuration is wrong: starting again would fail in the same way
    143  stopped as asked, after saving; 138  crashed: both are worth another start
TRAINYARD_GRACE_S is the time between SIGTERM and SIGKILL, in seconds, of whoever stops this process (40).
"""

import sys

from training.core.signals import end_at_once

if __name__ == "__main__":
    end_at_once()

    from training.core.launcher import launch

    sys.exit(launch(sys.argv[1:]))
