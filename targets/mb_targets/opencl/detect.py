"""Find the kernels of a document: a file of OpenCL C, or the strings of a host program that hold some."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mb_targets.model import Kernel
from mb_targets.opencl.features import features
from mb_targets.opencl.scan import Scan

__all__ = ["HOST_LANGUAGES", "embedded", "features", "find_kernels"]

HOST_LANGUAGES = frozenset({"c", "cpp", "python"})
DIALECT = "opencl"  # of what such a string holds

_CPP_STRING = re.compile(
    r"""//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z)
    |\b(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s"]{0,16})\((?P<content>.*?)\)(?P=delimiter)"
    |"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])'""",
    re.VERBOSE | re.DOTALL,
)
_PYTHON_STRING = re.compile(
    r"""\#[^\n]*
    |(?P<prefix>(?<!\w)[rRbBuUfF]{0,2})(?P<quotes>\"{3}|'{3})(?P<content>(?:\\.|[^\\])*?)(?P=quotes)
    |"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?""",
    re.VERBOSE | re.DOTALL,
)
_KERNEL = re.compile(r"\b(?:__)?kernel\b")
_ESCAPE = re.compile(r"\\(?!\r?\n)")


def find_kernels(text: str, language: str) -> Sequence[Kernel]:
    """Find the kernels that are whole, in order; each one's source is the string that holds it."""
    if language not in HOST_LANGUAGES:
        return Scan(text, language).kernels
    return [k for offset, source in embedded(text, language) for k in Scan(source, DIALECT, offset).kernels]


def embedded(text: str, language: str) -> list[tuple[int, str]]:
    """Give offset and content of each piece of OpenCL C in a document; a ``.cl`` file is one piece.

    A piece is a substring of the document, so that an edit of it is an edit of the document. Strings that are
    not, because they hold escapes or are put together from parts, are left out.
    """
    if language not in HOST_LANGUAGES:
        return [(0, text)]
    if not _KERNEL.search(text):
        return []
    found = _PYTHON_STRING.finditer(text) if language == "python" else _CPP_STRING.finditer(text)
    pieces = [m for m in found if m.group("content") is not None and _KERNEL.search(m.group("content"))]
    if language == "python":
        pieces = [m for m in pieces if _verbatim(m.group("prefix").lower(), m.group("content"))]
    return [(m.start("content"), m.group("content")) for m in pieces]


def _verbatim(prefix: str, content: str) -> bool:
    """Tell whether a Python string's content is what is written; a line that goes on counts as such."""
    return "f" not in prefix and ("r" in prefix or not _ESCAPE.search(content))
