"""What a command answers when it cannot do its work, and the exit codes."""

from __future__ import annotations

import enum


class Code(enum.IntEnum):
    """Exit codes of the command line; ``docs/cli.md`` lists them."""

    DONE = 0
    INPUT = 1
    USAGE = 2
    DEVICE = 3
    INTERNAL = 4
    CANCELLED = 130


class CommandError(Exception):
    """A command cannot go on; the message is one sentence that says what to do next.

    Attributes:
        code: The exit code.
    """

    def __init__(self, message: str, code: Code = Code.INPUT) -> None:
        super().__init__(message)
        self.code = code
