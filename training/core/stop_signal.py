"""Whether this rank was told to stop, and the simplest way for all ranks to agree on it."""

import os
import signal
from types import FrameType

from training.core.peers import Peers
from training.core.signals import SIGNALS

# Read early: a launcher may also be killed while its ranks still load their data.
_PARENT = os.getppid()


class StopSignal:
    """From now on a signal is kept in mind, instead of ending the process."""

    def __init__(self) -> None:
        self._heard = False
        for number in SIGNALS:
            signal.signal(number, self._on_signal)

    @property
    def told(self) -> bool:
        # A launcher that was killed can pass no signal on, and its ranks must not outlive it.
        return self._heard or os.getppid() != _PARENT

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._heard = True


class StopEachStep:
    """Asks all ranks after each step, and waits for their answers."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._signal = StopSignal()

    def ask(self) -> None:
        """There is nothing to send ahead."""

    def agreed(self) -> bool:
        return self._peers.mean(self._signal.told) > 0
