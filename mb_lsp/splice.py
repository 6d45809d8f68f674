"""Edits made in a text, and one edit cut into the runs of lines that it changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate

from mb_targets.model import TextEdit

# As difflib gives them: what to do, and the lines of both sides that it is about.
Opcode = tuple[str, int, int, int, int]


def splice(text: str, edits: Sequence[TextEdit], ending: str) -> str:
    """Make edits in a text, given in order; the edits' own line ends are turned into ``ending``."""
    parts: list[str] = []
    at = 0
    for edit in edits:
        parts += [text[at : edit.start], edit.text.replace("\r\n", "\n").replace("\n", ending)]
        at = edit.end
    return "".join([*parts, text[at:]])


def line_ending(text: str) -> str:
    """Give CR LF only where every line ends so; a mixed text is edited as it is."""
    pairs = text.count("\r\n")
    return "\r\n" if pairs and pairs == text.count("\n") else "\n"


def hunks(text: str, edit: TextEdit) -> Iterator[TextEdit]:
    """Split an edit into one a changed run of lines, so that an editor can preview and take them singly."""
    before = text[edit.start : edit.end].splitlines(keepends=True)
    after = edit.text.splitlines(keepends=True)
    starts = list(accumulate(map(len, before), initial=edit.start))
    for tag, i1, i2, j1, j2 in opcodes(before, after):
        if tag != "equal":
            yield TextEdit(starts[i1], starts[i2], "".join(after[j1:j2]))


def opcodes(a: Sequence[str], b: Sequence[str]) -> list[Opcode]:
    """Match lines; equal heads and tails are taken off first, as matching repeated lines is quadratic."""
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    matcher = SequenceMatcher(None, a[head : len(a) - tail], b[head : len(b) - tail], autojunk=False)
    inner = [(t, i1 + head, i2 + head, j1 + head, j2 + head) for t, i1, i2, j1, j2 in matcher.get_opcodes()]
    first = [("equal", 0, head, 0, head)] if head else []
    last = [("equal", len(a) - tail, len(a), len(b) - tail, len(b))] if tail else []
    return [*first, *inner, *last]
