"""Whether a program or a library is there, asked before anything is started for it."""

import importlib.util

from training.core.exits import ConfigurationError


def exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):  # a parent that is missing; a name that is none
        return False


def require(library: str, *, image: str) -> None:
    """Refuse a program whose library only one image has."""
    if not exists(library):
        raise ConfigurationError(
            f"{library} is not installed: it is in the image `{image}`; on this machine, make .venvs/{image}/installed"
        )
