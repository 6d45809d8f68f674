"""Find the places of a workspace that launch a kernel; bounded in files and bytes, nothing is run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from mb_targets.model import Kernel
from mb_targets.opencl import host_c, host_python
from mb_targets.opencl.sites import Site

C_SUFFIXES = frozenset({".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".hh", ".inl"})
MARKERS = (".git", ".hg", "modelblaster.toml", "pyproject.toml", "CMakeLists.txt", "Makefile")

_SKIPPED = frozenset(
    {"node_modules", "build", "dist", "target", "venv", "__pycache__", "third_party", "external"}
)
_MOST_FILES = 2000
_MOST_BYTES = 16 << 20
_LARGEST_FILE = 1 << 20
_HIGHEST = 6
_CL_FILE = re.compile(r"([\w.-]+\.(?:cl|clh|ocl))\b")


def sites(kernel: Kernel, path: Path, text: str | None = None) -> list[Site]:
    """List the launches of a kernel in the workspace of its document.

    A host program that names other ``.cl`` files but not this one launches another kernel of the same name.

    Args:
        kernel: The kernel.
        path: The document.
        text: The document's text where it differs from the file's.
    """
    found: list[Site] = []
    mentioned = re.compile(rf"\b{re.escape(kernel.name)}\b")
    for program, code in _programs(path, text):
        if mentioned.search(code) and _concerns(program, code, path, kernel):
            find = host_python.sites if program.suffix == ".py" else host_c.sites
            found += find(program, code, kernel.name)
    return found


def root(path: Path) -> Path:
    """Give the folder of the workspace that a document belongs to: the nearest that is marked as one."""
    parents = path.absolute().parents[:_HIGHEST]
    marked = (p for p in parents if any((p / m).exists() for m in MARKERS))
    return next(marked, path.absolute().parent)


def _concerns(program: Path, code: str, path: Path, kernel: Kernel) -> bool:
    if program == path.absolute():
        return True
    named = set(_CL_FILE.findall(code))
    if named:
        return path.name in named
    return not re.search(rf"\bkernel\s+[\w\s()]*\b{re.escape(kernel.name)}\s*\(", code)


def _programs(path: Path, text: str | None) -> Iterator[tuple[Path, str]]:
    """Give the host programs, nearest to the document first."""
    document = path.absolute()
    if text is not None and _is_program(document):
        yield document, text
    budget = _MOST_BYTES
    for program in _nearest_first(document):
        if program == document and text is not None:
            continue
        try:
            size = program.stat().st_size
            if size > _LARGEST_FILE:
                continue
            budget -= size
            if budget < 0:
                return
            yield program, program.read_bytes().decode()
        except (OSError, UnicodeDecodeError):
            continue


def _nearest_first(document: Path) -> list[Path]:
    top = root(document)
    found: list[Path] = []
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(f for f in folders if f not in _SKIPPED and not f.startswith("."))
        found += [p for name in sorted(files) if _is_program(p := Path(folder, name))]
        if len(found) >= _MOST_FILES:
            break
    return sorted(found, key=lambda p: (not p.is_relative_to(document.parent), p != document, len(p.parts)))


def _is_program(path: Path) -> bool:
    return path.suffix == ".py" or path.suffix in C_SUFFIXES
