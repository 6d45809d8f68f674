"""Find the places of a workspace that launch a kernel; bounded in files and bytes, nothing is run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path

from mb_targets.model import Kernel
from mb_targets.opencl import host_c, host_python
from mb_targets.opencl.sites import Search, Site, Span

C_SUFFIXES = frozenset({".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".hh", ".inl"})
WHOLE = (".git", ".hg", "modelblaster.toml")
PARTS = ("pyproject.toml", "CMakeLists.txt", "Makefile")

_SKIPPED = frozenset(
    {"node_modules", "build", "dist", "target", "venv", "site-packages", "__pycache__"}
    | {"third_party", "external"}
)
_MOST_FILES = 4000
_MOST_BYTES = 32 << 20
_LARGEST_FILE = 1 << 20
_HIGHEST = 6
_CL_FILE = re.compile(r"[\w./\\+@~-]*\.(?:cl|clh|ocl)\b")


def search(kernel: Kernel, path: Path, text: str | None = None) -> Search:
    """Find the launches of a kernel in the workspace of its document.

    A host program that names other ``.cl`` files but not this one launches another kernel of the same name.

    Args:
        kernel: The kernel.
        path: The document.
        text: The document's text where it differs from the file's.
    """
    found: list[Site] = []
    mentioned = re.compile(rf"\b{re.escape(kernel.name)}\b")
    programs = _Programs(path.absolute(), kernel.name)
    for program, code in programs.read(text):
        if not (mentioned.search(code) and _concerns(program, code, path, kernel)):
            continue
        find = host_python.sites if program.suffix == ".py" else host_c.sites
        made = find(program, code, kernel.name)
        doubt = programs.doubt(program, code) if made else None
        found += [replace(made[0], call=doubt[0], reason=doubt[1])] if doubt else made
    return Search(tuple(found), programs.incomplete)


def root(path: Path) -> Path:
    """Give the folder of the workspace that a document belongs to.

    That is the nearest with a repository or with settings, else the nearest with a build file: such may stand
    in a part of the whole only. A person's home is never one, whatever lies there, and nothing above it is
    looked at.
    """
    document = path.absolute()
    folders = list(takewhile(lambda f: not _is_outermost(f), document.parents[:_HIGHEST]))
    for markers in (WHOLE, PARTS):
        for folder in folders:
            if any((folder / marker).exists() for marker in markers):
                return folder
    return document.parent


def _is_outermost(folder: Path) -> bool:
    home = Path(os.path.expanduser("~"))
    return folder == folder.parent or folder == home or folder.resolve() == home.resolve()


def _concerns(program: Path, code: str, path: Path, kernel: Kernel) -> bool:
    if program == path.absolute():
        return True
    named = [m.group().replace("\\", "/") for m in _CL_FILE.finditer(code)]
    if not named:
        return not re.search(rf"\bkernel\s+[\w\s()]*\b{re.escape(kernel.name)}\s*\(", code)
    alike = [n for n in named if n.rpartition("/")[2] == path.name]
    meant = [file for n in alike if (file := _existing(n, program, path))]
    return any(path.exists() and file.samefile(path) for file in meant) if meant else bool(alike)


def _existing(named: str, program: Path, path: Path) -> Path | None:
    """Find the file that a host program names; None where that takes running it."""
    places = (folder / named for folder in (program.parent, root(path)))
    return next((p for p in places if p.is_file()), None)


@dataclass(slots=True)
class _Programs:
    """The host programs of a workspace.

    Attributes:
        document: Where the kernel is.
        name: The kernel's name.
        incomplete: Why not all of them were read, empty where all were.
    """

    document: Path
    name: str
    incomplete: str = ""
    _twins: list[Path] = field(default_factory=list)

    def read(self, text: str | None) -> Iterator[tuple[Path, str]]:
        """Give the programs and their texts, nearest to the document first."""
        if text is not None and _is_program(self.document):
            yield self.document, text
        budget = _MOST_BYTES
        for program in self._nearest_first():
            if program == self.document and text is not None:
                continue
            try:
                budget -= program.stat().st_size
                if budget < 0:
                    self.incomplete = f"its programs are more than {_MOST_BYTES >> 20} MiB"
                    return
                content = program.read_bytes()
            except FileNotFoundError:
                continue
            except OSError as error:
                self.incomplete = f"{program.name} could not be read: {error.strerror}"
                continue
            if self.name.encode() in content:
                yield from self._decoded(program, content)

    def doubt(self, program: Path, code: str) -> tuple[Span, str] | None:
        """Find where a program names a file that may be what it has the kernel of this name from."""
        if program == self.document:
            return None
        for found in _CL_FILE.finditer(code):
            where = Span(found.start(), found.end(), found.group())
            named = found.group().replace("\\", "/")
            file = _existing(named, program, self.document)
            if file is None and self._twins and named.rpartition("/")[2] == self.document.name:
                several = f"the workspace has several files called {self.document.name}"
                return where, f"{several}, and which of them is loaded could not be told"
            if file is not None and file.resolve() != self.document.resolve() and self._is_in(file):
                return where, f"{file.name} is loaded too and has a kernel of the same name"
        return None

    def _is_in(self, file: Path) -> bool:
        try:
            text = file.read_bytes().decode(errors="replace")
        except OSError:
            return True
        return bool(
            re.search(
                rf"\bkernel\s[^;{{}}]*\b{re.escape(self.name)}\s*\(", text.replace("__kernel", "kernel")
            )
        )

    def _decoded(self, program: Path, content: bytes) -> Iterator[tuple[Path, str]]:
        try:
            if len(content) > _LARGEST_FILE:
                self.incomplete = f"{program.name} is too large to be read as a program"
            else:
                yield program, content.decode()
        except UnicodeDecodeError:
            self.incomplete = f"{program.name} is not in UTF-8"

    def _nearest_first(self) -> list[Path]:
        top = root(self.document)
        found: list[Path] = []
        for folder, folders, files in os.walk(top):
            folders[:] = sorted(f for f in folders if f not in _SKIPPED and not f.startswith("."))
            if _is_outermost(top):
                folders.clear()
            paths = [Path(folder, name) for name in sorted(files)]
            found += [p for p in paths if _is_program(p)]
            self._twins += [p for p in paths if p.name == self.document.name and p != self.document]
            if len(found) > _MOST_FILES:
                self.incomplete = f"it holds more than {_MOST_FILES} programs"
                break
        near = self.document.parent
        return sorted(found, key=lambda p: (not p.is_relative_to(near), p != self.document, len(p.parts)))


def _is_program(path: Path) -> bool:
    return path.suffix == ".py" or path.suffix in C_SUFFIXES
