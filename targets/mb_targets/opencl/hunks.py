"""Edits the size of what changed: lines that differ, and within one line the words that do."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from mb_targets.model import TextEdit


def hunks(before: str, after: str, offset: int = 0) -> list[TextEdit]:
    """Give the edits that turn one text into another, in order; unchanged lines are left out.

    Args:
        before: The text as it is.
        after: The text as it will be, with any line ends.
        offset: Where ``before`` begins in the document.
    """
    after = _line_ends(before, after)
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [
        _trimmed(offset + starts[a], before[starts[a] : starts[b]], "".join(new[c:d]))
        for kind, a, b, c, d in matcher.get_opcodes()
        if kind != "equal"
    ]


def apply(text: str, edits: list[TextEdit]) -> str:
    """Apply edits to the text that their offsets refer to."""
    return "".join(_pieces(text, edits))


def _pieces(text: str, edits: list[TextEdit]) -> Iterator[str]:
    at = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        yield text[at : edit.start]
        yield edit.text
        at = edit.end
    yield text[at:]


def _line_ends(before: str, after: str) -> str:
    """Write the new text with the line ends of the old one."""
    plain = after.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if before.count("\r\n") * 2 > before.count("\n") else plain


def _trimmed(start: int, old: str, new: str) -> TextEdit:
    """Leave out what both have in front and at the end; never cut between the halves of a line end."""
    front = 0
    while front < min(len(old), len(new)) and old[front] == new[front]:
        front += 1
    back = 0
    while back < min(len(old), len(new)) - front and old[-1 - back] == new[-1 - back]:
        back += 1
    if front and old[front - 1] == "\r":
        front -= 1
    return TextEdit(start + front, start + len(old) - back, new[front : len(new) - back])
