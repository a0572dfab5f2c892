"""A signal to a process that waits in C, for its peers to come."""

import signal
import subprocess
import sys

from tests.training.conftest import ROOT
from training.core.signals import ending_at_once

# Locked twice, a mutex waits for ever, and no handler of Python's can run.
WAITS_IN_C = """
import ctypes
from training.core.signals import end_at_once, ending_at_once
end_at_once()
mutex = ctypes.create_string_buffer(64)
lock = ctypes.CDLL(None).pthread_mutex_lock
lock(mutex)
with ending_at_once():
    print("waits", flush=True)
    lock(mutex)
"""


def test_it_ends_as_one_that_was_stopped() -> None:
    process = subprocess.Popen([sys.executable, "-c", WAITS_IN_C], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "waits\n"
    process.terminate()
    assert process.wait(timeout=30) == 143


def test_after_the_wait_nobody_listens_any_more() -> None:
    with ending_at_once():
        pass
    assert signal.set_wakeup_fd(-1) == -1
