"""The signals that ask a process to stop, before its program has begun to listen and after it has ended."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

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


@contextmanager
def ending_at_once() -> Iterator[None]:
    """For a wait that is spent in C, where a handler of Python's never gets to run."""
    heard, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup)

    def listen() -> None:
        if os.read(heard, 1):  # else it is the end of the wait
            os._exit(STOPPED)

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(-1)
        os.close(wakeup)
        listener.join()
        os.close(heard)
