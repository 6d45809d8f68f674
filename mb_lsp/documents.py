"""The open documents: their text, their lines and the kernels in them, worked out once a version."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mb_lsp.lines import Encoding, Lines
from mb_targets import registry
from mb_targets.model import Kernel
from mb_targets.protocol import Outline, Scanner, SupportsScan, Target

# Larger texts are generated ones; scanning them would hold up every other request.
MOST_CHARACTERS = 8_000_000


@dataclass(frozen=True, slots=True)
class Placed:
    """A kernel and where it lies in its document."""

    kernel: Kernel

    @property
    def start(self) -> int:
        """Offset in the document of the kernel's first character."""
        return self.kernel.offset + self.kernel.start

    @property
    def end(self) -> int:
        """Offset in the document one past the kernel's last character."""
        return self.kernel.offset + self.kernel.end


@dataclass(frozen=True, slots=True)
class Change:
    """A new text for a document, or for the part of it between two positions (line and column)."""

    text: str
    start: tuple[int, int] | None = None
    end: tuple[int, int] | None = None

    def made(self, text: str, encoding: Encoding) -> str:
        """Give the text that is left."""
        if self.start is None or self.end is None:
            return self.text
        lines = Lines(text, encoding)
        return lines.text[: lines.offset(*self.start)] + self.text + lines.text[lines.offset(*self.end) :]


class Finder:
    """Finds the kernels of the versions of one document; after an edit it looks only at what changed."""

    def __init__(self, path: Path | None, language: str) -> None:
        self._path = path
        self._language = language
        self._text: str | None = None
        self._scanners: list[Scanner] = []

    def kernels(self, text: str) -> tuple[Placed, ...]:
        """Find the kernels of a version, in order."""
        if not self._follow(text):
            return tuple(Placed(k) for t in self._targets() for k in t.find_kernels(text, self._dialect(t)))
        return tuple(Placed(kernel) for scanner in self._scanners for kernel in scanner.kernels)

    def outline(self, text: str) -> list[Outline] | None:
        """Give the kernels in short; None where they have to be read whole."""
        return [each for s in self._scanners for each in s.outline] if self._follow(text) else None

    def _follow(self, text: str) -> bool:
        """Bring the scanners to a version; False where some target has none that can follow."""
        if self._text is None:
            scanners = [self._scanner(target, text) for target in self._targets()]
            self._scanners = [scanner for scanner in scanners if scanner is not None]
            if len(self._scanners) < len(scanners):
                return False
        elif text != self._text:
            for scanner in self._scanners:
                scanner.follow(text, *span(self._text, text))
        self._text = text
        return True

    def _targets(self) -> list[Target]:
        return targets_of(self._path, self._language)

    def _scanner(self, target: Target, text: str) -> Scanner | None:
        return target.scan(text, self._dialect(target)) if isinstance(target, SupportsScan) else None

    def _dialect(self, target: Target) -> str:
        own = self._path is not None and self._path.suffix in target.suffixes
        return unit_language(target) if own else self._language


class Document:
    """One version of an open document; never changes.

    Attributes:
        path: None for unsaved text and for anything else that is no file.
    """

    def __init__(
        self, uri: str, path: Path | None, version: int | None, text: str, encoding: Encoding, finder: Finder
    ) -> None:
        self.uri = uri
        self.path = path
        self.version = version
        self.text = text
        self.encoding = encoding
        self._finder = finder

    @cached_property
    def lines(self) -> Lines:
        """Its lines."""
        return Lines(self.text, self.encoding)

    @cached_property
    def kernels(self) -> tuple[Placed, ...]:
        """Its kernels in order."""
        return self._finder.kernels(self.text) if len(self.text) <= MOST_CHARACTERS else ()

    @cached_property
    def outline(self) -> Sequence[Outline]:
        """Its kernels in short, in order: enough for lenses, which are asked for at each keystroke."""
        if len(self.text) > MOST_CHARACTERS:
            return ()
        short = self._finder.outline(self.text)
        if short is not None:
            return short
        return [Outline(p.kernel.name, p.start, p.end, p.kernel.identity) for p in self.kernels]

    def find(self, name: str, identity: str = "") -> Placed | None:
        """Find a kernel by name; among several of that name the one of this identity, else the first."""
        named = [p for p in self.kernels if p.kernel.name == name]
        exact = (p for p in named if p.kernel.identity == identity)
        return next(exact, named[0] if named else None)

    def touching(self, start: int, end: int) -> list[Placed]:
        """List the kernels that a range of offsets touches, each taken with the whole of its first line."""
        found = []
        for placed in self.kernels:
            if placed.end < start:
                continue
            if self.lines.start(self.lines.line_at(placed.start)) > end:
                break
            found.append(placed)
        return found

    def changed(self, text: str, version: int | None) -> Document:
        """Give the document's next version."""
        return Document(self.uri, self.path, version, text, self.encoding, self._finder)


class Documents:
    """The open documents by URI."""

    def __init__(self, encoding: Encoding = "utf-16") -> None:
        self.encoding = encoding
        self._open: dict[str, Document] = {}

    def __iter__(self) -> Iterator[Document]:
        """Go through the open documents."""
        return iter(list(self._open.values()))

    def open(self, uri: str, path: Path | None, language: str, version: int, text: str) -> Document:
        """Take a document that the client opened."""
        self._open[uri] = Document(uri, path, version, text, self.encoding, Finder(path, language))
        return self._open[uri]

    def change(self, uri: str, version: int | None, changes: Iterable[Change]) -> Document | None:
        """Take changes, each of the text that the one before left; None if the document is not open."""
        known = self._open.get(uri)
        if known is None:
            return None
        text = known.text
        for change in changes:
            text = change.made(text, self.encoding)
        self._open[uri] = known.changed(text, version)
        return self._open[uri]

    def close(self, uri: str) -> None:
        """Forget a document."""
        self._open.pop(uri, None)

    def get(self, uri: str) -> Document | None:
        """Give an open document."""
        return self._open.get(uri)

    def at(self, path: Path) -> Document | None:
        """Give the open document of a file, whichever links either name goes through."""
        real = os.path.realpath(path)
        return next((d for d in self._open.values() if d.path and os.path.realpath(d.path) == real), None)


def targets_of(path: Path | None, language: str) -> list[Target]:
    """List the targets that read a document: by its suffix, else by its language."""
    by_path = registry.for_path(path) if path is not None else []
    return by_path or registry.for_language(language)


def unit_language(target: Target) -> str:
    """Give the language id of a translation unit of this target by itself, whatever the editor calls it."""
    return target.name if target.name in target.languages else min(target.languages)


def span(old: str, new: str) -> tuple[int, int, int]:
    """Find what changed between two texts: its start, its end in the old one and its end in the new one."""
    shorter = min(len(old), len(new))
    head = _alike(shorter, lambda a, b: old[a:b] == new[a:b])
    rest = shorter - head
    tail = _alike(rest, lambda a, b: old[len(old) - b : len(old) - a] == new[len(new) - b : len(new) - a])
    return head, len(old) - tail, len(new) - tail


def _alike(length: int, equal: Callable[[int, int], bool]) -> int:
    """Find how far two texts are equal by halving: slices compare a hundred times faster than characters."""
    low, high = 0, length
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if equal(low, middle) else (low, middle - 1)
    return low
