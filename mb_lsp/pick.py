"""Find what a person means by ``FILE`` or ``FILE:KERNEL``."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from mb_lsp.problems import Code, CommandError
from mb_targets import registry
from mb_targets.errors import TargetError
from mb_targets.model import Kernel
from mb_targets.protocol import Target

_LANGUAGES = {
    ".cl": "opencl", ".clh": "opencl", ".ocl": "opencl", ".cu": "cuda", ".cuh": "cuda",
    ".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hpp": "cpp", ".hh": "cpp",
    ".py": "python",
}  # fmt: skip

MOST_BYTES = 16_000_000


@dataclass(frozen=True, slots=True)
class Document:
    """A file as it is on disk, its line endings kept."""

    path: Path
    text: str


def split(argument: str) -> tuple[Path, str]:
    """Split ``FILE[:KERNEL]``; a colon that belongs to an existing file's name stays in it.

    Raises:
        CommandError: It is empty.
    """
    if not argument:
        raise CommandError("no file is named; give the path of a file with a kernel in it", Code.USAGE)
    whole = Path(argument)
    front, colon, name = argument.rpartition(":")
    if os.path.exists(argument) or not colon or not name.isidentifier() or len(front) < 2:
        return whole, ""
    return Path(front), name


def read(path: Path) -> Document:
    """Read a document.

    Raises:
        CommandError: It is missing, no regular file, too long, unreadable or not UTF-8.
    """
    try:
        data = _bytes(path)
    except FileNotFoundError:
        raise CommandError(f"there is no file {path}; give the path of a file with a kernel in it") from None
    except IsADirectoryError:
        raise CommandError(f"{path} is a folder; name one file in it") from None
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}; check its permissions") from None
    try:
        return Document(path, data.decode())
    except UnicodeDecodeError:
        raise CommandError(f"{path} is not UTF-8 text; convert it to UTF-8 first") from None


def _bytes(path: Path) -> bytes:
    # A pipe that nobody writes to would hold up a blocking open for ever.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise CommandError(f"{path} is not a regular file; name a file with a kernel in it")
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise CommandError(
            f"{path} has more than {MOST_BYTES // 1_000_000} MB; put the kernel in a file of its own"
        )
    return data


def kernels(document: Document, name: str = "") -> list[Kernel]:
    """List the kernels of a document, or the one that is named.

    Raises:
        CommandError: No target reads the file, it has no kernel, or none of that name.
    """
    path = document.path
    found = [k for target, language in _readers(path) for k in target.find_kernels(document.text, language)]
    if not found:
        what = "is empty" if not document.text.strip() else "has no whole kernel in it"
        raise CommandError(f"{path} {what}; a kernel is a function marked __kernel, with its closing brace")
    if not name:
        return found
    named = [k for k in found if k.name == name]
    if not named:
        there = ", ".join(k.name for k in found)
        raise CommandError(f"{path} has no kernel named {name}; it has: {there}")
    return named


def _readers(path: Path) -> list[tuple[Target, str]]:
    language = _LANGUAGES.get(path.suffix.lower())
    try:
        targets = registry.for_language(language) if language else registry.for_path(path)
    except (ImportError, TargetError) as error:
        raise CommandError(
            f"a target cannot be loaded ({error}); run: modelblaster doctor", Code.DEVICE
        ) from error
    if not targets:
        known = " ".join(sorted(_LANGUAGES))
        raise CommandError(
            f"no installed target reads {path.suffix or path.name} files; it has to be one of {known}"
        )
    return [(t, language or next(iter(t.languages))) for t in targets]
