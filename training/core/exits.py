"""How a run ends: the exit codes that the outside acts on, and the ends that need one message and no traceback.

With the operators' `restartPolicy: ExitCode`, codes 1 to 127 are permanent and 128 to 255 are retried.
"""

DONE = 0
CONFIGURATION = 2
CRASHED = 138
STOPPED = 143


class Exit(Exception):
    """An end of the run that its message explains completely."""

    code = CRASHED


class ConfigurationError(Exit):
    """What was asked for cannot be done; starting again would fail in the same way."""

    code = CONFIGURATION


class SaveFailed(Exit):
    """A checkpoint could not be written; the older ones are intact."""


class Stopped(Exit):
    """The run was asked to stop, and did so between two steps."""

    code = STOPPED
