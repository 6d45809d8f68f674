"""Edits in characters to edits in the client's positions, hunk by hunk, at each document's own version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from lsprotocol import types

from mb_lsp.documents import Document, Documents, Placed
from mb_lsp.lines import Lines
from mb_lsp.review import Refusal
from mb_lsp.splice import hunks, line_ending, splice
from mb_targets.model import DocumentEdits, TextEdit, digest

# By URI: the version the edits were made for (None for a file that is not open), and the edits.
Changes = dict[str, tuple[int | None, list[types.TextEdit]]]


def changes(documents: Documents, document: Document, edits: Sequence[DocumentEdits]) -> Changes | Refusal:
    """Turn edits into the client's terms.

    Args:
        documents: The open documents: what is open counts, not what is on disk.
        document: The document that the edits were asked for, which may be no file.
        edits: One entry a document, made for the present texts.
    """
    result: Changes = {}
    own = {str(document.path), str(document.path.resolve())} if document.path else set()
    for each in edits:
        path = Path(each.path)
        opened = document if each.path in own or not path.exists() else documents.at(path)
        if opened is None:
            text = _on_disk(path)
            uri, version = path.as_uri(), None
        else:
            text, uri, version = opened.text, opened.uri, opened.version
        if text is None or digest(text) != each.identity:
            return Refusal(f"{each.path} has changes that are not saved; save it and try again")
        result[uri] = (version, list(_ranged(Lines(text, documents.encoding), each.edits)))
    return result


def insertion(document: Document, placed: Placed, comment: str, replace: bool) -> types.TextEdit:
    """Make the edit that puts a comment directly above a kernel, inside the string that holds it.

    Args:
        document: The document.
        placed: The kernel.
        comment: One or more lines.
        replace: Whether the lines that state the launch now go; otherwise the comment comes below them.
    """
    lines, start, inside = document.lines, placed.start, placed.kernel.offset
    line = lines.line_at(start)
    first = line
    while (
        replace
        and lines.start(first) > inside
        and _is_launch(document.text[max(lines.start(first - 1), inside) : lines.end(first - 1)])
    ):
        first -= 1
    begin, end = max(lines.start(first), inside), max(lines.start(line), inside)
    indent = document.text[end:start] if document.text[end:start].isspace() else ""
    ending = line_ending(document.text)
    text = "".join(f"{indent}{each.strip()}{ending}" for each in comment.splitlines() if each.strip())
    return types.TextEdit(range=ranged(lines, begin, end), new_text=text)


def ranged(lines: Lines, start: int, end: int) -> types.Range:
    """Turn a range of offsets into one of positions."""
    first, last = lines.position(start), lines.position(end)
    return types.Range(
        start=types.Position(line=first[0], character=first[1]),
        end=types.Position(line=last[0], character=last[1]),
    )


def _ranged(lines: Lines, edits: Sequence[TextEdit]) -> Iterator[types.TextEdit]:
    """Make one edit a run of changed lines, whatever pieces the edits came in."""
    if not edits:
        return
    text = lines.text
    start, end = lines.start(lines.line_at(edits[0].start)), lines.start(lines.line_at(edits[-1].end) + 1)
    inner = [TextEdit(edit.start - start, edit.end - start, edit.text) for edit in edits]
    whole = TextEdit(start, end, splice(text[start:end], inner, line_ending(text)))
    for hunk in hunks(text, whole):
        yield types.TextEdit(range=ranged(lines, hunk.start, hunk.end), new_text=hunk.text)


def _is_launch(line: str) -> bool:
    words = line.split()
    return words[:2] == ["//", "mb:"] and words[2:3] != ["file"]


def _on_disk(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None
