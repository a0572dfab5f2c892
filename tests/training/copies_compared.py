"""A program of training/ whose ranks compare at the end what each of them would save.

python -m tests.training.copies_compared training.xgboost_train [arguments]
"""

import hashlib
import sys
from importlib import import_module

from training.core.copies import CopiesRun
from training.core.program import start


class Compared(CopiesRun):
    """The results have the number of different models among the ranks."""

    def finish(self, **results: float) -> None:
        digests = [hashlib.sha256(content).hexdigest() for _, content in sorted(self._files().items())]
        different = {tuple(of_rank) for of_rank in self._peers.from_all(digests)}
        super().finish(**results, models=len(different))


if __name__ == "__main__":
    program = import_module(sys.argv.pop(1))
    program.CopiesRun = Compared
    start(program.main, program.Settings)
