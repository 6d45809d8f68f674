"""Ask clang what is wrong with OpenCL C, without a device: ``python -m mb_targets.opencl.diagnose``.

Reads the source from standard input, takes compiler options as arguments, and prints a JSON list of
diagnostics. A helper process's work: the server never loads libclang.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from mb_targets.errors import TargetUnavailable
from mb_targets.opencl import clang_header

if TYPE_CHECKING:
    from clang.cindex import TranslationUnit

Severity: TypeAlias = Literal["note", "warning", "error"]

_SOURCE = "kernel.cl"
_ARGUMENTS = (
    *("-x", "cl", "-cl-std=CL3.0", "-target", "spir64", "-cl-no-stdinc"),
    *("-Xclang", "-fdeclare-opencl-builtins", "-Xclang", "-cl-ext=+all"),
)
_SEVERITIES: dict[int, Literal["note", "warning", "error"]] = {
    1: "note",
    2: "warning",
    3: "error",
    4: "error",
}


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    Attributes:
        start: Character offset in the source.
        end: Offset past the span it is about, ``start`` where it is about a point.
    """

    start: int
    end: int
    severity: Severity
    message: str


def diagnose(source: str, options: Sequence[str] = ()) -> list[Diagnostic]:
    """Parse a source, and list what clang finds.

    Raises:
        TargetUnavailable: libclang is not installed.
    """
    unit, front = parsed(source, options)
    places = _Characters(source)
    found: list[Diagnostic] = []
    for d in unit.diagnostics:
        start = d.location.offset - front
        if d.severity not in _SEVERITIES or start < 0 or not d.location.file:
            continue
        spans = (r.end.offset - front for r in d.ranges if r.start.offset <= d.location.offset)
        end = max((e for e in spans if e > start), default=start)
        found.append(Diagnostic(places(start), places(end), _SEVERITIES[d.severity], d.spelling))
    return found


def parsed(source: str, options: Sequence[str] = ()) -> tuple[TranslationUnit, int]:
    """Parse a source, and say how many bytes stand in front of it in the unit's offsets.

    Raises:
        TargetUnavailable: libclang is not installed.
    """
    try:
        from clang import cindex
    except ImportError as error:
        raise TargetUnavailable("libclang is not installed: pip install 'modelblaster[opencl]'") from error
    # In front of the source and not included: the wheel's clang finds no header that is not on disk.
    front = clang_header.header()
    arguments = [*_ARGUMENTS, "-Wall", "-Wno-unused", *_understood(options)]
    return cindex.Index.create().parse(_SOURCE, arguments, [(_SOURCE, front + source)]), len(front)


class _Characters:
    """Turns offsets in UTF-8 bytes into offsets in characters."""

    def __init__(self, source: str) -> None:
        self._bytes = b"" if source.isascii() else source.encode()

    def __call__(self, offset: int) -> int:
        return len(self._bytes[:offset].decode(errors="ignore")) if self._bytes else offset


def _understood(options: Sequence[str]) -> list[str]:
    """Keep the options that clang's front end takes: macros, includes, the language's version."""
    pairs = zip(("", *options), options, strict=False)
    two_words = ("-D", "-U", "-I")
    return [o for first, o in pairs if first in two_words or o.startswith((*two_words, "-cl-std="))]


def main() -> None:
    """Diagnose standard input."""
    source = sys.stdin.buffer.read().decode(errors="replace")
    sys.stdout.buffer.write(msgspec.json.encode(diagnose(source, sys.argv[1:])))


if __name__ == "__main__":
    main()
