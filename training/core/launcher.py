"""One node's launcher: torchrun in this process, and its outcome as one message and one exit code."""

import argparse
import logging
import os
import re
import signal
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import NoReturn

from torch.distributed import run as torchrun
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.elastic.rendezvous.api import RendezvousClosedError, RendezvousConnectionError
from torch.distributed.launcher import api

from training.core.agent import Agent, ToldToStop
from training.core.exits import CONFIGURATION, CRASHED, DONE, STOPPED, ConfigurationError
from training.core.modules import exists

# What a pod's grace period is where none is named, and how much of it is kept for what follows the ranks' end.
_GRACE_S = "40"
_RESERVE_S = 10
# The last two are what torchrun itself raises for them.
_BAD_OPTIONS = (ConfigurationError, ValueError, AssertionError)


def launch(arguments: list[str]) -> int:
    """Run this node's ranks to their end; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="trainyard-") as error_files:
        try:
            args = _parse(arguments)
            args.log_dir = args.log_dir or error_files
            _handle_signals()
            api.LocalElasticAgent = Agent
            Agent.is_elastic = _is_elastic(args.nnodes)
            if Agent.is_elastic:
                # Else a newcomer waits for an address that rank 0 does not announce a second time (torch 2.15).
                os.environ.setdefault("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
            torchrun.run(args)
        except ChildFailedError as failed:
            return _blame(args.training_script, failed.failures)
        except ToldToStop as told:
            return _after_stop(args.training_script, told, args.shutdown_timeout)
        except SignalException:
            return STOPPED  # before any rank had started
        except (RendezvousClosedError, RendezvousConnectionError) as lost:
            _say(f"{args.training_script}: the other nodes are gone: {lost}")
            return CRASHED
        except _BAD_OPTIONS as error:
            _say(str(error))
            return CONFIGURATION
        except Exception:
            _say(traceback.format_exc())
            return CRASHED
    return DONE


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = torchrun.get_args_parser()
    parser.prog = "python -m training.launch"
    parser.usage = "%(prog)s [torchrun options] MODULE [module arguments]"
    args: argparse.Namespace = parser.parse_args(arguments)
    if not re.fullmatch(r"\d+(:\d+)?", args.nnodes):
        raise ConfigurationError(f"--nnodes {args.nnodes}: must be a number of nodes, or MIN:MAX")
    if args.no_python or args.run_path:
        raise ConfigurationError("--no-python and --run-path do not apply: what is started is always a module")
    args.module = True
    if not exists(args.training_script):
        raise ConfigurationError(f"{args.training_script}: there is no such module; an example is training.mnist")
    if args.shutdown_timeout is None:
        args.shutdown_timeout = _shutdown_timeout_s()
    # The signals below are handled here; torchrun would let a second one interrupt the saving that the first began.
    args.signals_to_handle = "SIGQUIT"
    if args.nproc_per_node != "1":
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # as torchrun does, which warns about it in five lines
    if "LOGLEVEL" not in os.environ:  # torchrun's own variable
        for name in logging.root.manager.loggerDict:
            if name.startswith("torch.distributed.elastic"):
                logging.getLogger(name).setLevel(logging.CRITICAL)  # this module says it in one line
    return args


def _is_elastic(nnodes: str) -> bool:
    fewest, _, most = nnodes.partition(":")
    return bool(most) and int(fewest) < int(most)


def _shutdown_timeout_s() -> int:
    grace_s = os.environ.get("TRAINYARD_GRACE_S", _GRACE_S)
    if not grace_s.isdecimal() or int(grace_s) <= _RESERVE_S:
        raise ConfigurationError(f"TRAINYARD_GRACE_S is {grace_s!r}: must be whole seconds, more than {_RESERVE_S}")
    return int(grace_s) - _RESERVE_S


def _handle_signals() -> None:
    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
        numbers.append(signal.SIGHUP)

    def on_signal(number: int, _frame: FrameType | None) -> NoReturn:
        for other in numbers:
            signal.signal(other, signal.SIG_IGN)
        raise SignalException(f"told to stop by {signal.Signals(number).name}", signal.SIGTERM)

    for number in numbers:
        signal.signal(number, on_signal)
    heard, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup)
    threading.Thread(target=_leave_the_meeting, args=(heard,), daemon=True).start()


def _leave_the_meeting(heard: int) -> None:
    """End a wait for nodes that never come: it is spent in C, where the handler above cannot run."""
    os.read(heard, 1)
    time.sleep(1)  # the handler comes first wherever it can
    if Agent.is_meeting:
        os._exit(STOPPED)


def _after_stop(module: str, told: ToldToStop, timeout_s: int) -> int:
    """143 if every rank ended in order, or the first step had not begun."""
    lost = {rank: failure for rank, failure in told.failures.items() if failure.exitcode != STOPPED}
    # A rank that still waits for the others to begin dies of the signal itself, and its peers of that.
    if not lost or any(failure.exitcode == -signal.SIGTERM for failure in lost.values()):
        return STOPPED
    if any(failure.exitcode == -signal.SIGKILL for failure in lost.values()):
        _say(f"{module}: not saved: still busy {timeout_s} s after the signal, and killed (see TRAINYARD_GRACE_S)")
        return CRASHED
    return _blame(module, lost)


def _blame(module: str, failures: dict[int, ProcessFailure]) -> int:
    """Report the rank that failed first; returns the exit code that its end deserves."""
    rank, failure = min(failures.items(), key=lambda item: _order_of_death(item[1]))
    if failure.exitcode in (STOPPED, -signal.SIGTERM):
        return STOPPED
    message = _message(failure)
    if failure.exitcode == CONFIGURATION:
        _say(f"{module}: {message or f'rank {rank} refused its configuration'}")
        return CONFIGURATION
    if message:
        end = f"failed: {message}"
    elif failure.exitcode == -signal.SIGKILL:
        end = "was killed by SIGKILL, as the kernel does when memory runs out"
    elif failure.exitcode < 0:
        end = f"was killed by {failure.signal_name()}"
    else:
        end = f"ended with code {failure.exitcode}"
    _say(f"{module}: rank {rank} {end}")
    return CRASHED


def _order_of_death(failure: ProcessFailure) -> float:
    """A rank that was killed left no word, and comes first: the errors of its peers are what followed from it."""
    error_file = Path(failure.error_file)
    return error_file.stat().st_mtime if error_file.exists() else 0.0


def _message(failure: ProcessFailure) -> str | None:
    message = failure.error_file_data["message"]
    return str(message["extraInfo"]["py_callstack"]).strip() if isinstance(message, dict) else None


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
