"""Positions to offsets and back: the one place that knows lines and the client's position encoding.

Lines end at ``\\r\\n``, ``\\r`` and ``\\n`` only, as the protocol says; Python's ``splitlines`` also splits
at form feeds and U+2028 and would edit the wrong line. A column counts code units of the negotiated encoding.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate
from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_BREAK = re.compile(r"\r\n|\r|\n")


class Lines:
    """The lines of one text.

    Args:
        text: The whole document.
        encoding: What columns count.
    """

    __slots__ = ("_encoding", "_starts", "text")

    def __init__(self, text: str, encoding: Encoding = "utf-16") -> None:
        self.text = text
        self._encoding = encoding
        self._starts = _line_starts(text)

    def __len__(self) -> int:
        """Count the lines; a text that ends in a line break has an empty last line."""
        return len(self._starts)

    def start(self, line: int) -> int:
        """Give the offset of a line's first character; a line past the end starts at the text's end."""
        return self._starts[line] if line < len(self._starts) else len(self.text)

    def end(self, line: int) -> int:
        """Give the offset of a line's end, its line break not included."""
        if line + 1 >= len(self._starts):
            return len(self.text)
        end = self._starts[line + 1] - 1
        return end - 1 if self.text.startswith("\r\n", end - 1) and end > self._starts[line] else end

    def line_at(self, offset: int) -> int:
        """Give the line that holds an offset."""
        return bisect_right(self._starts, max(offset, 0)) - 1

    def position(self, offset: int) -> tuple[int, int]:
        """Turn an offset into line and column; one inside a line break means the line's end."""
        line = self.line_at(offset)
        start = self._starts[line]
        if offset == start:
            return line, 0
        return line, self._width(self.text[start : min(max(offset, 0), self.end(line))])

    def offset(self, line: int, column: int) -> int:
        """Turn line and column into an offset; a column past the end, or inside a character, rounds down."""
        if line < 0:
            return 0
        start, end = self.start(line), self.end(line) if line < len(self._starts) else len(self.text)
        if self._encoding == "utf-32" or self.text.isascii():
            return min(start + max(column, 0), end)
        units = 0
        for at in range(start, end):
            units += self._width(self.text[at])
            if units > column:
                return at
        return end

    def _width(self, part: str) -> int:
        if self._encoding == "utf-32" or part.isascii():
            return len(part)
        if self._encoding == "utf-16":
            return sum(2 if c > "\uffff" else 1 for c in part)
        return sum(1 if c < "\x80" else 2 if c < "\u0800" else 3 if c <= "\uffff" else 4 for c in part)


def _line_starts(text: str) -> list[int]:
    if "\r" in text:
        return [0, *(m.end() for m in _BREAK.finditer(text))]
    # Splitting and adding up lengths is six times faster than the expression on a 10,000-line file.
    starts = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
    return starts[:-1]
