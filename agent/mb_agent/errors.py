"""What the optimizer raises when the machine, the user or we are at fault.

AgentError
  OriginalRefused  the user's kernel crashes, is not deterministic, or is not as its launch says
  JobRefused    a job cannot do its work
  WorkerDied    a worker process ended in the middle of a call
  TimedOut      a call outlived its limit, and the worker was killed for it

A candidate that is wrong is a Verdict and no error. A worker that died or hung while it ran a candidate is
told apart from one that never started by what the caller was doing.
"""

from __future__ import annotations

import signal
from typing import Literal, TypeAlias

from mb_targets.protocol import FAULT

Cause: TypeAlias = Literal["input", "device", "internal"]


class AgentError(Exception):
    """Base of all errors of this package; the message says what to do next."""


def sentence(error: Exception) -> str:
    """Give an error's first line; of a worker's traceback, the last, which says what it is about."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[-1].strip() if lines[0].startswith("Traceback") else lines[0]


class OriginalRefused(AgentError):
    """The user's kernel cannot be judged against; the message says why and what would help."""


class JobRefused(AgentError):
    """A job cannot do its work; the message is for the user.

    Attributes:
        comment: A ``// mb:`` line that may answer it, or empty.
        cause: Whose turn it is, as in ``events.Failed``.
    """

    def __init__(self, message: str, comment: str = "", cause: Cause = "input") -> None:
        super().__init__(message)
        self.comment = comment
        self.cause: Cause = cause


class WorkerDied(AgentError):
    """A worker process ended before it answered.

    Attributes:
        signal: The signal that ended it, 0 when it exited by itself.
        tail: The end of what it wrote to its standard output and error.
        in_kernel: Whether it was running a kernel, not a compiler or a driver's start.
        place: The element outside a buffer that it touched, in words, where the worker could tell.
    """

    def __init__(self, what: str, signal_number: int, tail: str, in_kernel: bool = False) -> None:
        self.signal = signal_number
        self.tail = tail
        self.in_kernel = in_kernel
        self.place = _place(tail)
        cause = f"{what}: {_cause(signal_number, in_kernel, tail)}"
        super().__init__(cause if self.touched_memory or not tail else f"{cause}\n{tail}")

    @property
    def touched_memory(self) -> bool:
        """True when a kernel ended it by touching memory that is not its own, as at a guard page."""
        return self.in_kernel and self.signal in (signal.SIGSEGV, signal.SIGBUS)


class TimedOut(AgentError):
    """A call outlived its limit; the worker and its whole process group were killed."""


def _place(tail: str) -> str:
    places = [line.removeprefix(FAULT) for line in tail.splitlines() if line.startswith(FAULT)]
    return places[-1] if places else ""


def _cause(number: int, in_kernel: bool, tail: str) -> str:
    """Say in words what a signal means, and which buffer was left where the worker could tell."""
    if number == 0:
        return "the worker process exited"
    name = signal.Signals(number).name
    if number == signal.SIGKILL:
        return f"the worker process was killed ({name}), for example for lack of memory"
    if in_kernel and number in (signal.SIGSEGV, signal.SIGBUS):
        place = _place(tail)
        return f"touched memory outside a buffer{': ' + place if place else ''} ({name})"
    if in_kernel and number == signal.SIGFPE:
        return f"divided by zero ({name})"
    return f"crashed ({name})"
