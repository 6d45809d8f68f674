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
from mb_lsp.splice import line_ending, splice
from mb_targets.model import DocumentEdits, digest


@dataclass(frozen=True, slots=True)
class _Written:
    path: Path
    before: str
    temporary: Path


def apply_edits(documents: Sequence[DocumentEdits]) -> list[Path]:
    """Write the edits of all documents.

    Returns:
        The files written.

    Raises:
        CommandError: A file changed since the edits were made, or cannot be written; then none was written.
    """
    written: list[_Written] = []
    replaced: list[_Written] = []
    try:
        for document in documents:
            path = Path(document.path).resolve()
            before = _read(path)
            text = edited(before, document)
            written.append(_Written(path, before, _write_beside(path, text)))
        for one in written:
            one.temporary.replace(one.path)
            replaced.append(one)
    except OSError as error:
        left = [str(one.path) for one in replaced if not _restored(one)]
        kept = f"but {', '.join(left)} was written and could not be put back"
        what = kept if left else "nothing was applied"
        raise CommandError(f"cannot write {error.filename}: {error.strerror}; {what}") from error
    finally:
        for one in written:
            with contextlib.suppress(OSError):
                one.temporary.unlink(missing_ok=True)
    return [one.path for one in written]


def edited(text: str, document: DocumentEdits) -> str:
    r"""Give a document's text with its edits made; ``text`` has the line endings of the file.

    Edits made against the text with ``\n`` line ends fit too.

    Raises:
        CommandError: The text is not the one that the edits were made for.
    """
    ending = line_ending(text)
    plain = text.replace(ending, "\n")
    if digest(text) == document.identity:
        return splice(text, document.edits, ending)
    if digest(plain) == document.identity:
        return splice(plain, document.edits, "\n").replace("\n", ending)
    raise CommandError(f"{document.path} changed since it was read; run the command again on the new text")


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        raise CommandError(f"{path} can no longer be read as it was; nothing was applied") from None


def _restored(one: _Written) -> bool:
    """Put back what a file held, when another one of the same result could not be written."""
    try:
        _write_beside(one.path, one.before).replace(one.path)
    except OSError:
        return False
    return True


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
