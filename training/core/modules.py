"""Whether a program is there, asked before anything is started for it."""

import importlib.util


def exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):  # a parent that is missing; a name that is none
        return False
