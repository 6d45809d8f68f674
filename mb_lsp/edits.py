"""Edits in characters to edits in the client's positions, hunk by hunk, at each document's own version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from lsprotocol import types

from mb_lsp.documents import Document, Documents
from mb_lsp.lines import Lines
from mb_lsp.review import Refusal, hunks
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


def insertion(document: Document, start: int, comment: str) -> types.TextEdit:
    """Make the edit that puts a comment above the line of an offset, in place of one that is there."""
    lines = document.lines
    line = lines.line_at(start)
    first = line
    while first and _is_launch(document.text[lines.start(first - 1) : lines.end(first - 1)]):
        first -= 1
    begin, end = lines.start(first), lines.start(line)
    indent = document.text[end:start] if document.text[end:start].isspace() else ""
    ending = "\r\n" if "\r\n" in document.text else "\n"
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
    parts, at = [], start
    for edit in edits:
        parts += [text[at : edit.start], _ended(edit.text, "\r\n" in text)]
        at = edit.end
    whole = TextEdit(start, end, "".join([*parts, text[at:end]]))
    for hunk in hunks(text, whole):
        yield types.TextEdit(range=ranged(lines, hunk.start, hunk.end), new_text=hunk.text)


def _ended(text: str, crlf: bool) -> str:
    """Give the lines of a text the document's line ends."""
    plain = text.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if crlf else plain


def _is_launch(line: str) -> bool:
    words = line.split()
    return words[:2] == ["//", "mb:"] and words[2:3] != ["file"]


def _on_disk(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None
