"""Find the macros that a kernel needs and nothing defines: real files get them from their host's ``-D``."""

from __future__ import annotations

import re
from itertools import pairwise

from mb_targets.model import Kernel
from mb_targets.opencl.expand import expanded
from mb_targets.opencl.tokens import tokens, without_comments

_MACRO = re.compile(r"[A-Z][A-Z0-9_]*")
_BUILT_IN = re.compile(
    r"(?:CLK|M|FLT|DBL|HALF|CHAR|SCHAR|UCHAR|SHRT|USHRT|INT|UINT|LONG|ULONG|FP|CL|HUGE|ATOMIC)_\w+"
    r"|INFINITY|NAN|NULL|MAXFLOAT|HUGE_VALF?"
)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b", re.MULTILINE)
_NAMED_TYPE = re.compile(
    r"\btypedef\b[^;]*?\b(\w+)\s*;|\b(?:enum|struct|union)\s+(\w+)|\benum\b[^{;]*\{([^}]*)\}"
)


def missing_macros(kernel: Kernel, options: tuple[str, ...] = ()) -> list[str]:
    """List names in capitals that are used as values or types and stand for nothing, in the order met.

    A source that includes others is not judged: they may define anything.
    """
    if _INCLUDE.search(kernel.source):
        return []
    text = tokens(expanded(kernel, options))
    known = _declared(text) | _types(kernel) | {p.name for p in kernel.parameters}
    capitals = (t for t in text if _MACRO.fullmatch(t) and not _BUILT_IN.fullmatch(t))
    return list(dict.fromkeys(t for t in capitals if t not in known))


def _declared(text: list[str]) -> set[str]:
    """Names that are assigned or stand where a declaration has its name."""
    pairs = list(pairwise(text))
    assigned = {a for a, b in pairs if b == "="}
    ends = {a for a, b in pairs if b in (";", ",", "[", ")")}
    begins = {b for a, b in pairs if a.isidentifier() and a not in ("return", "else", "case", "goto")}
    return assigned | (ends & begins)


def _types(kernel: Kernel) -> set[str]:
    found = _NAMED_TYPE.findall(without_comments(kernel.source))
    return {word for groups in found for group in groups for word in re.findall(r"\w+", group)}
