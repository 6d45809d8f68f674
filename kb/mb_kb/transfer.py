"""Export and import: JSON lines that merge by being put behind one another.

Lines stand in the order of the kernels' identities, then of the outcomes' ids, so two exports of the same
knowledge are the same text. Import takes lines in any order, skips what is known, and says what it refused.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec

from mb_kb import append, health, keys, records
from mb_kb.errors import KnowledgeError
from mb_kb.knowledge import BATCH, KnowledgeBase
from mb_kb.salvage import is_database, salvage
from mb_kb.spool import Entry
from mb_kb.store import SCHEMA, Transaction
from mb_targets.outcome import Outcome

LONGEST_LINE = 1 << 20
LONGEST_VECTOR = 1024
SHOWN = 20  # refusals described one by one
PATIENCE_SECONDS = 30.0  # for other writers: an import is not spooled


class HeaderLine(msgspec.Struct, tag="modelblaster knowledge", frozen=True):
    """The first line of a file."""

    schema: int


class KernelLine(msgspec.Struct, tag="kernel", frozen=True):
    """A kernel's vector."""

    identity: str
    target: str
    features: tuple[int, ...]


class SourceLine(msgspec.Struct, tag="source", frozen=True):
    """A variant's text."""

    variant: str
    text: str


class OutcomeLine(msgspec.Struct, tag="outcome", frozen=True):
    """An outcome under the id that names it in every base."""

    id: str
    outcome: Outcome


Line: TypeAlias = HeaderLine | KernelLine | SourceLine | OutcomeLine
_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of an import.

    Attributes:
        outcomes: Read from the file.
        added: Of those, not known before.
        refused: Lines (or outcomes) that were not taken.
        reasons: The first of them, with the line's number.
    """

    outcomes: int
    added: int
    refused: int
    reasons: tuple[str, ...]


def export(base: KnowledgeBase, path: Path) -> int:
    """Write everything to a file, which appears whole or not at all; gives the number of outcomes.

    Raises:
        KnowledgeError: The file could not be written.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    count = 0
    try:
        with part.open("wb") as f:
            f.write(_encoder.encode(HeaderLine(SCHEMA)) + b"\n")
            for line in _lines(base):
                count += isinstance(line, OutcomeLine)
                f.write(_encoder.encode(line) + b"\n")
        part.replace(path)
    except OSError as e:
        raise health.explain_os(e, path) from e
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    return count


def import_(base: KnowledgeBase, path: Path) -> Imported:
    """Merge a file into the base: one that ``export`` wrote, or a database that was set aside as damaged.

    Raises:
        KnowledgeError: The file could not be read, or the base not be written.
    """
    intake = _Intake(base)
    try:
        if is_database(path):
            for entry in salvage(path):
                intake.add(entry)
        else:
            with path.open("rb") as f:
                for number, line in enumerate(f, 1):
                    intake.take(number, line)
    except OSError as e:
        raise KnowledgeError(f"cannot read {path}: {e.strerror}") from e
    return intake.finish()


class _Intake:
    """Lines on their way in, a batch at a time."""

    def __init__(self, base: KnowledgeBase) -> None:
        self._base = base
        self._entries: list[Entry] = []
        self._sources: list[SourceLine] = []
        self._vectors: dict[bytes, KernelLine] = {}
        self._outcomes = self._added = self._refused = 0
        self._reasons: list[str] = []

    def take(self, number: int, line: bytes) -> None:
        if not line.strip():
            return
        try:
            self._sort_in(line)
        except ValueError as e:  # msgspec's errors are ValueErrors, as are those of the values themselves
            self._refused += 1
            if len(self._reasons) < SHOWN:
                self._reasons.append(f"line {number}: {e}")

    def add(self, entry: Entry) -> None:
        self._outcomes += 1
        self._entries.append(entry)
        if len(self._entries) >= BATCH:
            self._flush()

    def finish(self) -> Imported:
        self._flush()
        vectors = list(self._vectors.items())
        with self._base.store.writing(PATIENCE_SECONDS):
            self._base.store.write(lambda t: _put_vectors(t, vectors))
        return Imported(self._outcomes, self._added, self._refused, tuple(self._reasons))

    def _sort_in(self, line: bytes) -> None:
        if len(line) > LONGEST_LINE:
            raise ValueError(f"longer than {LONGEST_LINE} bytes")
        match _decoder.decode(line):
            case HeaderLine(schema=schema):
                if schema > SCHEMA:
                    raise ValueError(f"written by a newer version (schema {schema}): update this program")
            case KernelLine() as k:
                if len(k.features) > LONGEST_VECTOR:
                    raise ValueError(f"a vector of {len(k.features)} features")
                self._vectors[keys.identity_key(k.identity)] = k
            case SourceLine() as s:
                self._sources.append(s)
            case OutcomeLine(id=text, outcome=outcome):
                id_ = bytes.fromhex(text)
                if len(id_) != 16:
                    raise ValueError(f"an id of {len(id_)} bytes")
                self.add(Entry(id_, records.encode(outcome)))

    def _flush(self) -> None:
        self._added += self._base.add(self._entries, PATIENCE_SECONDS)
        sources = self._sources
        if sources:
            with self._base.store.writing(PATIENCE_SECONDS):
                self._base.store.write(lambda t: _put_sources(t, sources))
        self._entries, self._sources = [], []


def _put_sources(t: Transaction, sources: Iterable[SourceLine]) -> None:
    for s in sources:
        append.put_source(t, s.variant, s.text)


def _put_vectors(t: Transaction, vectors: Iterable[tuple[bytes, KernelLine]]) -> None:
    for identity, line in vectors:
        append.put_feature(t, identity, append.clamp(line.features), line.target)


def _lines(base: KnowledgeBase) -> Iterator[Line]:
    """Give the lines in order, reading some hundred at a time so that no transaction stays open."""
    start = keys.SOURCE
    kernel = b""
    while True:
        found = base.store.read(partial(_some_lines, start=start))
        if not found:
            return
        for key, lines in found:
            if key[1:17] == kernel:
                lines = [line for line in lines if not isinstance(line, KernelLine)]
            kernel = key[1:17]
            yield from lines
            start = key + b"\0"


def _some_lines(t: Transaction, start: bytes, count: int = 500) -> list[tuple[bytes, list[Line]]]:
    found: list[tuple[bytes, list[Line]]] = []
    c = t.cursor()
    more = c.set_range(start)
    while more and len(found) < count and c.key()[:1] == keys.SOURCE:
        key = c.key()
        raw = t.get(keys.OUTCOME + c.value())
        if raw is not None:
            row = records.decode(raw[16:])
            lines: list[Line] = []
            vector = append.vector_of(t, key[1:17])
            if vector is not None:
                lines.append(KernelLine(row.identity, row.state.target, tuple(vector)))
            lines.append(OutcomeLine(key[17:].hex(), records.outcome(row)))
            text = t.get(keys.BLOB + keys.identity_key(row.provenance.variant))
            if text is not None and records.gain(row):
                lines.append(SourceLine(row.provenance.variant, zlib.decompress(text).decode()))
            found.append((key, lines))
        more = c.next()
    return found
