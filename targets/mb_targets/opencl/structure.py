"""Syntax trees of OpenCL C through the C grammar, at the source's own character offsets.

The C grammar knows no address spaces. Masking turns each into a qualifier of C of the same length, so that
the tree keeps a node where it stood, and ``qualifier`` reads from the source what that node says. Attributes,
pragmas and macros around ``kernel`` become spaces. Every character that is not ASCII becomes one that is: the
tree's byte offsets are then character offsets of the source.
"""

from __future__ import annotations

import re
from functools import cache

import tree_sitter_c
from tree_sitter import Language, Node, Parser, Tree

SPACES = ("global", "local", "constant", "private", "generic")
ACCESS = ("read_only", "write_only", "read_write")
QUALIFIERS = (*SPACES, *ACCESS, "kernel")

_VERBATIM = r"""//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
_PATTERN = re.compile(
    rf"""(?P<verbatim>{_VERBATIM})
    |(?P<blank>^[ \t]*\#[ \t]*pragma\b(?:\\\r?\n|[^\n])*
      |\b_Pragma[ ]*\([^()\n]*\)
      |\b__attribute__\s*\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\)
      |\b__extension__\b
      |\b[A-Z_][A-Z0-9_]+(?:[ \t]*\([^()\n]*\))?(?=\s+(?:__)?kernel\b)
      |(?<=kernel)\s+[A-Z_][A-Z0-9_]+(?:[ \t]*\([^()\n]*\))?(?=\s+void\b))
    |(?P<qualifier>\b(?:__)?(?:{"|".join(QUALIFIERS)})\b)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_NOT_NEWLINE = re.compile(r"[^\r\n]")
_WORD = re.compile(r"\w+")


def mask(source: str) -> str:
    """Make text of the same length that the C grammar can parse."""
    return _NOT_ASCII.sub("_", _PATTERN.sub(_masked, source.replace("\ufeff", " ")))


def parse(source: str) -> Tree:
    """Parse OpenCL C; offsets in the tree are character offsets of ``source``, errors are nodes of it."""
    return _parser().parse(mask(source).encode("ascii"))


def text(source: str, node: Node) -> str:
    """Give the source text of a node, as the user wrote it."""
    return source[node.start_byte : node.end_byte]


def qualifier(source: str, node: Node) -> str:
    """Name what a ``type_qualifier`` node stands for, without underscores: ``global``, ``const``."""
    word = _WORD.match(source, node.start_byte)
    return word.group().strip("_") if word else ""


def _masked(found: re.Match[str]) -> str:
    if found.lastgroup == "verbatim":
        return found.group()
    if found.lastgroup == "blank":
        return _NOT_NEWLINE.sub(" ", found.group())
    return "const".ljust(len(found.group()))


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_c.language()))
