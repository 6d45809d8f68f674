"""The open documents: their text, their lines and the kernels in them, worked out once a version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mb_lsp.lines import Encoding, Lines
from mb_targets import registry
from mb_targets.model import Kernel
from mb_targets.protocol import Target

# Larger texts are generated ones; scanning them would hold up every other request.
MOST_CHARACTERS = 8_000_000


@dataclass(frozen=True, slots=True)
class Placed:
    """A kernel and where it lies in its document.

    Attributes:
        offset: Where ``kernel.source`` begins in the document's text; 0 unless it is in a string.
    """

    kernel: Kernel
    offset: int

    @property
    def start(self) -> int:
        """Offset in the document of the kernel's first character."""
        return self.offset + self.kernel.start

    @property
    def end(self) -> int:
        """Offset in the document one past the kernel's last character."""
        return self.offset + self.kernel.end


class Document:
    """One version of an open document; never changes.

    Attributes:
        path: None for unsaved text and for anything else that is no file.
        language: The client's language id.
    """

    def __init__(
        self, uri: str, path: Path | None, language: str, version: int | None, text: str, encoding: Encoding
    ) -> None:
        self.uri = uri
        self.path = path
        self.language = language
        self.version = version
        self.text = text
        self.encoding = encoding

    @cached_property
    def lines(self) -> Lines:
        """Its lines."""
        return Lines(self.text, self.encoding)

    @cached_property
    def kernels(self) -> tuple[Placed, ...]:
        """Its kernels in order."""
        return tuple(self._scan()) if len(self.text) <= MOST_CHARACTERS else ()

    def find(self, name: str, identity: str = "") -> Placed | None:
        """Find a kernel by name; among several of that name the one of this identity, else the first."""
        named = [p for p in self.kernels if p.kernel.name == name]
        exact = (p for p in named if p.kernel.identity == identity)
        return next(exact, named[0] if named else None)

    def touching(self, start: int, end: int) -> list[Placed]:
        """List the kernels that a range of offsets touches, each taken with the whole of its first line."""
        lines = self.lines
        return [p for p in self.kernels if lines.start(lines.line_at(p.start)) <= end and start <= p.end]

    def changed(self, text: str, version: int | None) -> Document:
        """Give the document's next version."""
        return Document(self.uri, self.path, self.language, version, text, self.encoding)

    def _scan(self) -> Iterator[Placed]:
        for target in targets_of(self.path, self.language):
            dialect = (
                unit_language(target) if self.path and self.path.suffix in target.suffixes else self.language
            )
            yield from place(self.text, target.find_kernels(self.text, dialect))


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
        self._open[uri] = Document(uri, path, language, version, text, self.encoding)
        return self._open[uri]

    def change(self, uri: str, version: int | None, text: str) -> Document | None:
        """Take a document's new text; None if it is not open."""
        known = self._open.get(uri)
        if known is None:
            return None
        self._open[uri] = known.changed(text, version)
        return self._open[uri]

    def close(self, uri: str) -> None:
        """Forget a document."""
        self._open.pop(uri, None)

    def get(self, uri: str) -> Document | None:
        """Give an open document."""
        return self._open.get(uri)

    def at(self, path: Path) -> Document | None:
        """Give the open document of a file."""
        return next((d for d in self._open.values() if d.path == path), None)


def targets_of(path: Path | None, language: str) -> list[Target]:
    """List the targets that read a document: by its suffix, else by its language."""
    by_path = registry.for_path(path) if path is not None else []
    return by_path or registry.for_language(language)


def unit_language(target: Target) -> str:
    """Give the language id of a translation unit of this target by itself, whatever the editor calls it."""
    return target.name if target.name in target.languages else min(target.languages)


def place(text: str, kernels: Sequence[Kernel]) -> Iterator[Placed]:
    """Find where each kernel's source begins in the document; kernels come in the document's order."""
    source, offset = text, 0
    for kernel in kernels:
        if kernel.source is not source and kernel.source != source:
            found = text.find(kernel.source, offset + (len(source) if source is not text else 0))
            source, offset = kernel.source, max(found, 0)
        yield Placed(kernel, offset)
