"""Stopping between two steps, all ranks at the same one.

A signal reaches the ranks at different moments, or only one of them. Now and then a step therefore opens with an
asynchronous maximum over every rank's "was I told to stop?", and closes with reading it: by then the answer has long
arrived, so that agreeing costs no waiting and never touches a GPU's queue.
"""

import time

import torch
import torch.distributed as dist

from training.core.stop_signal import StopSignal

# Gloo takes about 0.4 ms of CPU for one question. Steps shorter than this share one, but never so many that a sudden
# slow step would use up the grace period.
_INTERVAL_S = 0.1
_MAX_SILENT_STEPS = 20


class StopRequest:
    """Whether this rank was told to stop, and whether all have agreed to."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self._group = group
        self._signal = StopSignal()
        self._silent_steps = 0
        self._steps_since_asked = 0
        self._asked_at: float | None = None
        self._question: dist.Work | None = None

    def ask(self) -> None:
        """Open a step: send what this rank knows, if it is time."""
        self._steps_since_asked += 1
        if self._steps_since_asked <= self._silent_steps:
            return
        # Clocks differ and the steps of the next question must not: rank 0's pace, the others' zero, and the maximum.
        silent_steps = self._steps_per_interval() if dist.get_rank() == 0 else 0
        self._answer = torch.tensor([self._signal.told, silent_steps])
        self._question = dist.all_reduce(self._answer, dist.ReduceOp.MAX, group=self._group, async_op=True)

    def agreed(self) -> bool:
        """Close the step: whether any rank had been told when all had opened it."""
        if self._question is None:
            return False
        self._question.wait()
        self._question = None
        told, self._silent_steps = self._answer.tolist()
        self._steps_since_asked = 0
        return bool(told)

    def _steps_per_interval(self) -> int:
        asked_before, self._asked_at = self._asked_at, time.monotonic()
        if asked_before is None:
            return 0  # no step has been timed yet
        step_s = (self._asked_at - asked_before) / self._steps_since_asked
        return min(int(_INTERVAL_S / step_s), _MAX_SILENT_STEPS)
