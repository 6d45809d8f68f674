"""Show edits as a unified diff."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from mb_targets.model import DocumentEdits, TextEdit


def unified(documents: Sequence[DocumentEdits], path: str, text: str) -> str:
    """Write the unified diff of every document that is edited.

    Args:
        documents: The edits.
        path: The document that the job was started on.
        text: Its text then, which may not be what is on the disk.
    """
    parts = []
    for document in documents:
        own = document.path in (path, "") or Path(document.path) == Path(path)
        before = text if own else Path(document.path).read_text(encoding="utf-8")
        after = edited(before, document.edits)
        name = document.path or "untitled"
        lines = difflib.unified_diff(
            _lines(before), _lines(after), f"a/{name.lstrip('/')}", f"b/{name.lstrip('/')}"
        )
        parts.append(
            "".join(
                line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
            )
        )
    return "".join(parts)


def edited(text: str, edits: Sequence[TextEdit]) -> str:
    """Apply edits, given in order and not overlapping."""
    for edit in reversed(edits):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _lines(text: str) -> list[str]:
    """Split after line feeds only, as diff and patch do."""
    return [line + "\n" for line in text.split("\n")[:-1]] + (
        [tail] if (tail := text.split("\n")[-1]) else []
    )
