"""Have a helper process ask clang why a kernel does not compile; libclang is loaded nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Literal

import msgspec

from mb_targets.model import Kernel
from mb_targets.protocol import Diagnostic

_SECONDS = 20.0
_COMMAND = (sys.executable, "-P", "-m", "mb_targets.opencl.diagnose")
_KEPT = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "SYSTEMROOT", "TMPDIR")


class _Found(msgspec.Struct, frozen=True):
    start: int
    severity: Literal["note", "warning", "error"]
    message: str


def problems(kernel: Kernel, options: Sequence[str] = (), seconds: float = _SECONDS) -> list[Diagnostic]:
    """List what clang holds to be errors; where there are none, its warnings.

    Args:
        kernel: The kernel; all of its source is parsed.
        options: Compiler options.
        seconds: How long that may take.

    Returns:
        Nothing where libclang is missing, fails, or takes too long.
    """
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        done = subprocess.run(
            [*_COMMAND, *options],
            input=kernel.source.encode(),
            env=environment,
            capture_output=True,
            check=True,
            timeout=seconds,
        )
        found = msgspec.json.decode(done.stdout, type=list[_Found])
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError):
        return []
    errors = [f for f in found if f.severity == "error"]
    chosen = errors or [f for f in found if f.severity == "warning"]
    return [_placed(kernel.source, f) for f in chosen]


def _placed(source: str, found: _Found) -> Diagnostic:
    line = source.rfind("\n", 0, found.start) + 1
    return Diagnostic(source.count("\n", 0, found.start) + 1, found.start - line + 1, found.message)
