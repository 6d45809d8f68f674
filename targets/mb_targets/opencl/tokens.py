"""Tokens of OpenCL C: what counts in a text once comments and spacing are gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

LINE_COMMENT = r"//(?:\\\r?\n|[^\n])*"
BLOCK_COMMENT = r"/\*.*?(?:\*/|\Z)"
STRING = r'"(?:\\.|[^"\\\n])*"?'
CHARACTER = r"'(?:\\.|[^'\\\n])*'?"
DIRECTIVE = rf"\#(?:\\\r?\n|{BLOCK_COMMENT}|{LINE_COMMENT}|[^\n])*"
_NUMBER = r"\.?\d(?:[eEpP][-+]|[\w.])*"
_SIGNS = r"<<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]="

_COUNTED = re.compile(
    rf"{LINE_COMMENT}|{BLOCK_COMMENT}|({DIRECTIVE}|{STRING}|{CHARACTER}|{_NUMBER}|\w+|{_SIGNS}|[^\s\w])",
    re.DOTALL,
)
_HIDDEN = re.compile(rf"({LINE_COMMENT}|{BLOCK_COMMENT}|{DIRECTIVE})|{STRING}|{CHARACTER}", re.DOTALL)
_COMMENT = re.compile(rf"({LINE_COMMENT}|{BLOCK_COMMENT})|{STRING}|{CHARACTER}", re.DOTALL)
_DEFINE = re.compile(r"#\s*define\s+(\w+)(\([^()]*\))?\s*(.*)", re.DOTALL)
_NOT_NEWLINE = re.compile(r"[^\r\n]")


@dataclass(frozen=True, slots=True)
class Macro:
    """A ``#define``; ``parameters`` is None for one without a parameter list."""

    name: str
    parameters: tuple[str, ...] | None
    body: str


def tokens(text: str) -> list[str]:
    """List the tokens that count; a directive is one token, its comments removed and its spaces collapsed."""
    return [t if "#" not in t else _directive(t) for t in _COUNTED.findall(text) if t]


def blank(text: str) -> str:
    """Put spaces in place of comments and directives; every other character keeps its offset."""
    return _HIDDEN.sub(_spaces, text)


def without_comments(text: str) -> str:
    """Put spaces in place of comments; every other character keeps its offset."""
    return _COMMENT.sub(_spaces, text)


@lru_cache(maxsize=64)
def macros(source: str) -> dict[str, Macro]:
    """Give the macros of a source by name; of one that is defined twice, the last."""
    if "#" not in source:
        return {}
    return {m.name: m for m in map(macro, tokens(source)) if m}


def macro(token: str) -> Macro | None:
    """Read a directive's token as a ``#define``; None where it is none."""
    found = _DEFINE.match(token) if token.startswith("#") else None
    if not found:
        return None
    listed = found.group(2)
    parameters = None if listed is None else tuple(p.strip() for p in listed[1:-1].split(",") if p.strip())
    return Macro(found.group(1), parameters, found.group(3).strip())


def closing(text: str, start: int) -> int:
    """Find the bracket that closes the one at ``start`` in text without comments; -1 where none does."""
    opened = text[start]
    closed = {"(": ")", "[": "]", "{": "}"}[opened]
    depth = 0
    for found in re.compile(rf"[{re.escape(opened + closed)}]").finditer(text, start):
        depth += 1 if found.group() == opened else -1
        if depth == 0:
            return found.start()
    return -1


def split(text: str, separator: str = ",") -> list[str]:
    """Split at separators outside brackets, and strip the parts; no parts for blank text."""
    return [text[a:b].strip() for a, b in spans(text, separator)] if text.strip() else []


def spans(text: str, separator: str = ",") -> Iterator[tuple[int, int]]:
    """Give the offsets of the parts between separators outside brackets."""
    depth = start = 0
    for i, c in enumerate(text):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == separator and depth == 0:
            yield start, i
            start = i + 1
    yield start, len(text)


def _directive(token: str) -> str:
    if not token.startswith("#"):
        return token
    return " ".join(without_comments(token).replace("\\\r\n", " ").replace("\\\n", " ").split())


def _spaces(found: re.Match[str]) -> str:
    return _NOT_NEWLINE.sub(" ", found.group()) if found.group(1) is not None else found.group()
