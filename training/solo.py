"""Start a program as the only process of its pod: for libraries that find their peers by themselves, without torchrun.

    python -m training.solo MODULE [module arguments]

The exit code is training.launch's: 0 done, 2 the configuration is wrong, 143 stopped as asked, 138 crashed.
"""

import runpy
import sys

from training.core.exits import CONFIGURATION
from training.core.modules import exists
from training.core.signals import end_at_once

if __name__ == "__main__":
    match sys.argv[1:]:
        case [module, *arguments] if exists(module):
            end_at_once()
            sys.argv[1:] = arguments
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case [module, *_]:
            print(f"{module}: there is no such module; an example is training.mnist", file=sys.stderr)
            sys.exit(CONFIGURATION)
        case _:
            print(__doc__, file=sys.stderr)
            sys.exit(CONFIGURATION)
