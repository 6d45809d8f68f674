"""Work out the condition of an ``#if`` over the macros that are known."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping

from mb_targets.opencl.tokens import Macro

_DEFINED = re.compile(r"\bdefined\b\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_TOKEN = re.compile(r"\s*(\d+|\w+|&&|\|\||[<>=!]=|<<|>>|[-+*/%<>!()])")
_DEEPEST = 8
_LEVELS: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: int(bool(a) or bool(b))},
    {"&&": lambda a, b: int(bool(a) and bool(b))},
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge},
    {"<<": operator.lshift, ">>": operator.rshift},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": operator.floordiv, "%": operator.mod},
)


def holds(condition: str, known: Mapping[str, Macro]) -> bool:
    """Tell whether a condition holds; one that cannot be told counts as true, an unknown name as 0."""
    text = _DEFINED.sub(lambda m: str(int((m[1] or m[2]) in known)), condition)
    for _ in range(_DEEPEST):
        after = re.sub(r"\b[A-Za-z_]\w*\b", lambda m: _body(m.group(), known), text)
        if after == text:
            break
        text = after
    parser = _Parser(text)
    try:
        value = parser.level(0)
    except (ValueError, ZeroDivisionError, RecursionError):
        return True
    return bool(value) if parser.finished else True


def _body(name: str, known: Mapping[str, Macro]) -> str:
    found = known.get(name)
    return f"({found.body})" if found and found.body and found.parameters is None else "0"


class _Parser:
    """Works out the text while reading it; ValueError where it is no condition of numbers."""

    def __init__(self, text: str) -> None:
        self._tokens = [re.sub(r"(?<=\d)[uUlL]+$", "", t) for t in _TOKEN.findall(text)]
        self._whole = not _TOKEN.sub("", text).strip()
        self._at = 0

    @property
    def finished(self) -> bool:
        """Whether all of the text was understood."""
        return self._whole and self._at == len(self._tokens)

    def level(self, number: int) -> int:
        """Read operands joined by the operators of one level or a stronger one."""
        if number == len(_LEVELS):
            return self._atom()
        value = self.level(number + 1)
        while self._at < len(self._tokens) and self._tokens[self._at] in _LEVELS[number]:
            sign = self._take()
            value = int(_LEVELS[number][sign](value, self.level(number + 1)))
        return value

    def _take(self) -> str:
        if self._at >= len(self._tokens):
            raise ValueError
        self._at += 1
        return self._tokens[self._at - 1]

    def _atom(self) -> int:
        token = self._take()
        if token == "!":
            return int(not self._atom())
        if token == "-":
            return -self._atom()
        if token == "(":
            value = self.level(0)
            if self._take() != ")":
                raise ValueError
            return value
        return int(token, 16 if token[:2].lower() == "0x" else 10)
