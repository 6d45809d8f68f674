"""Write edits to files: all of them or none, atomically, with mode and line endings kept."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mb_lsp.problems import CommandError
from mb_targets.model import DocumentEdits, TextEdit, digest


@dataclass(frozen=True, slots=True)
class _Written:
    path: Path
    temporary: Path


def apply_edits(documents: Sequence[DocumentEdits]) -> list[Path]:
    """Write the edits of all documents.

    Returns:
        The files written.

    Raises:
        CommandError: A file changed since the edits were made, or cannot be written; then none was written.
    """
    texts = [(Path(d.path).resolve(), edited(_read(Path(d.path)), d)) for d in documents]
    written: list[_Written] = []
    try:
        for path, text in texts:
            written.append(_Written(path, _write_beside(path, text)))
        for one in written:
            one.temporary.replace(one.path)
    except OSError as error:
        raise CommandError(f"cannot write {error.filename}: {error.strerror}; nothing was applied") from error
    finally:
        for one in written:
            with contextlib.suppress(OSError):
                one.temporary.unlink(missing_ok=True)
    return [path for path, _ in texts]


def edited(text: str, document: DocumentEdits) -> str:
    r"""Give a document's text with its edits made; ``text`` has the line endings of the file.

    Edits made against the text with ``\n`` line ends fit too.

    Raises:
        CommandError: The text is not the one that the edits were made for.
    """
    ending = _line_ending(text)
    plain = text.replace(ending, "\n")
    if digest(text) == document.identity:
        return splice(text, document.edits, ending)
    if digest(plain) == document.identity:
        return splice(plain, document.edits, "\n").replace("\n", ending)
    raise CommandError(f"{document.path} changed since it was read; run the command again on the new text")


def splice(text: str, edits: Sequence[TextEdit], ending: str) -> str:
    """Make edits in a text, the edits' own line ends turned into ``ending``."""
    parts: list[str] = []
    at = 0
    for edit in edits:
        parts += [text[at : edit.start], edit.text.replace("\r\n", "\n").replace("\n", ending)]
        at = edit.end
    return "".join([*parts, text[at:]])


def _line_ending(text: str) -> str:
    """Give CR LF only where every line ends so; a mixed file is edited as it is."""
    pairs = text.count("\r\n")
    return "\r\n" if pairs and pairs == text.count("\n") else "\n"


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        raise CommandError(f"{path} can no longer be read as it was; nothing was applied") from None


def _write_beside(path: Path, text: str) -> Path:
    """Write a text to a new file in the same folder, with the mode of the one it will replace."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(path, name)
        if not os.access(path, os.W_OK):
            raise PermissionError(13, "it is read-only", str(path))
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)
