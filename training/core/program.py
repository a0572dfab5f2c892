"""From a command line to an exit code: how every program starts and ends."""

import contextlib
import faulthandler
import io
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TypeVar

import tyro

from training.core.exits import CRASHED, DONE, STOPPED, ConfigurationError, Exit, Stopped
from training.core.settings import StepSettings
from training.core.signals import ignore_from_now_on

Settings = TypeVar("Settings", bound=StepSettings)


def start(main: Callable[[Settings], None], settings_type: type[Settings]) -> NoReturn:
    """Run a program's `main` with the flags of the command line, and exit with the code that its end deserves."""
    faulthandler.enable()
    module = _module()
    os.environ.setdefault("TRAINYARD_STACK", module.rpartition(".")[2])
    os.environ.setdefault("TRAINYARD_RUN", "local")
    code = _exit_code(lambda: main(parse(settings_type, sys.argv[1:], module)))
    if code == DONE:
        sys.exit(code)
    # Process groups that were not left in order abort the interpreter on its way out, and the code would be lost.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def parse(settings_type: type[Settings], arguments: list[str], module: str) -> Settings:
    """The flags as settings; what is wrong with them is a ConfigurationError."""
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                settings_type,
                args=arguments,
                prog=f"python -m training.launch {module}",
                description=sys.modules["__main__"].__doc__,
                config=(tyro.conf.UseAppendAction, tyro.conf.FlagCreatePairsOff),
                console_outputs=os.environ.get("RANK", "0") == "0" or "--help" not in arguments,
            )
    except SystemExit as ended:
        if ended.code == DONE:
            raise
        raise ConfigurationError(_unboxed(complaint.getvalue())) from None


def _exit_code(program: Callable[[], None]) -> int:
    try:
        program()
    except (Stopped, KeyboardInterrupt):  # the latter comes before the first step, with nothing to save
        return STOPPED
    except Exit as end:
        _tell_launcher(str(end))
        return end.code
    except Exception:
        _tell_launcher(traceback.format_exc())
        return CRASHED
    finally:
        ignore_from_now_on()
    return DONE


def _tell_launcher(message: str) -> None:
    """Leave the reason in torchrun's error file, so that the launcher prints that of the first rank to fail, once."""
    details = {"py_callstack": message, "timestamp": str(int(time.time()))}
    if path := os.environ.get("TORCHELASTIC_ERROR_FILE"):
        with contextlib.suppress(OSError):  # a full disk: then the message is printed here after all
            temporary = Path(f"{path}.tmp")  # torchrun reads it whenever it is there, half written as well
            temporary.write_text(json.dumps({"message": {"message": message, "extraInfo": details}}))
            temporary.replace(path)
            return
    print(message, file=sys.stderr)


def _module() -> str:
    """The name that this program was started by: `training.mnist`."""
    spec = sys.modules["__main__"].__spec__
    return spec.name if spec else Path(sys.argv[0]).stem


def _unboxed(text: str) -> str:
    """tyro's message without the frame around it, the first line of which is a title."""
    lines = (line.strip(" ╭╮│╰╯─") for line in text.splitlines()[1:])
    return "\n".join(line for line in lines if line.strip("-"))
