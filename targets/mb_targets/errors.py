"""What a target raises.

TargetError
  TargetUnavailable   the toolchain or device is missing
  LaunchUnknown       nothing says how to launch the kernel
  BuildError          the compiler refused the source
  RunError            the program crashed, ran past its time, or left the device in error
"""

from __future__ import annotations


class TargetError(Exception):
    """Base of all errors of this package; the message says what to do next."""


class TargetUnavailable(TargetError):
    """The toolchain or device is missing; the message says what to install."""


class LaunchUnknown(TargetError):
    """A launch could not be inferred; the message says which comment or setting would give it."""


class BuildError(TargetError):
    """The compiler refused the source; the message is its log."""


class RunError(TargetError):
    """The program crashed, ran past its time, or left the device in error."""
