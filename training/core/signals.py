"""The signals that ask a process to stop, before its program has begun to listen and after it has ended."""

import signal
import sys

from training.core.exits import STOPPED

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def end_at_once() -> None:
    """For imports that take seconds: nothing is there to save yet, and PID 1 of a container would not even die."""
    for number in SIGNALS:
        signal.signal(number, lambda *_: sys.exit(STOPPED))


def ignore_from_now_on() -> None:
    """The work is done, and a late signal must not turn that into a failure."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
