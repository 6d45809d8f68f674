"""Append outcomes and everything derived from them, in one transaction."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

import msgspec

from mb_kb import keys, records, tally
from mb_kb.spool import Entry
from mb_kb.store import Transaction

FEATURE = struct.Struct(">I")
FIRST_SEEN = struct.Struct(">Q")

vector_row = msgspec.msgpack.Decoder(tuple[bytes, str, bytes]).decode  # (identity key, target, vector)


def append(t: Transaction, entries: Iterable[Entry]) -> int:
    """Append the outcomes that are not yet known, and say how many those were.

    All tables change together or not at all.
    """
    sequence = next_sequence(t)
    first = sequence
    sums = tally.Tally()
    vectors: dict[bytes, tuple[bytes, str]] = {}
    for entry in entries:
        row = records.decode(entry.row)
        identity = keys.identity_key(row.identity)
        source = keys.SOURCE + identity + entry.id
        if not t.put(source, FIRST_SEEN.pack(sequence), overwrite=False):
            continue
        t.put(keys.sequence_key(sequence), entry.id + entry.row, append=True)
        sums.add(row, entry.id, sequence)
        if entry.features:
            vectors[identity] = (entry.features, row.state.target)
        if entry.source and records.gain(row):
            put_source(t, row.provenance.variant, entry.source)
        sequence += 1
    merge(t, sums)
    for identity, (vector, target) in vectors.items():
        put_feature(t, identity, vector, target)
    return sequence - first


def next_sequence(t: Transaction) -> int:
    """Give the number that the next outcome gets."""
    c = t.cursor()
    if c.last() and c.key()[:1] == keys.OUTCOME:
        return keys.sequence_of(c.key()) + 1
    return 0


def merge(t: Transaction, sums: tally.Tally) -> None:
    """Merge sums into the derived tables."""
    for key, row in sorted(sums.rows(), key=itemgetter(0)):  # neighbours share pages
        raw = t.get(key)
        if raw is not None:
            row = tally.merged(key, raw, row)
        t.put(key, tally.encode(row))


def put_source(t: Transaction, digest: str, text: str) -> None:
    """Keep a variant's source under its hash."""
    key = keys.BLOB + keys.identity_key(digest)
    t.put(key, zlib.compress(text.encode(), 6), overwrite=False)


def put_feature(t: Transaction, identity: bytes, vector: bytes, target: str) -> None:
    """Keep a kernel's vector, if it has none yet; vectors are numbered in the order they came."""
    key = keys.KERNEL + identity
    raw = t.get(key)
    if raw is None:
        return
    known = tally.kernel(raw)
    if known.feature >= 0:
        return
    c = t.cursor()
    number = 0
    found = c.prev() if c.set_range(keys.after(keys.FEATURE)) else c.last()
    if found and c.key()[:1] == keys.FEATURE:
        number = FEATURE.unpack_from(c.key(), 1)[0] + 1
    t.put(keys.FEATURE + FEATURE.pack(number), msgspec.msgpack.encode((identity, target, vector)))
    known.feature = number
    t.put(key, tally.encode(known))


def vectors(t: Transaction) -> Iterator[tuple[int, bytes]]:
    """Give the number and the kernel of every vector."""
    c = t.cursor()
    found = c.set_range(keys.FEATURE)
    while found and c.key()[:1] == keys.FEATURE:
        yield FEATURE.unpack_from(c.key(), 1)[0], vector_row(c.value())[0]
        found = c.next()


def vector_of(t: Transaction, identity: bytes) -> bytes | None:
    """Read a kernel's vector."""
    raw = t.get(keys.KERNEL + identity)
    number = -1 if raw is None else tally.kernel(raw).feature
    found = None if number < 0 else t.get(keys.FEATURE + FEATURE.pack(number))
    return None if found is None else vector_row(found)[2]


def clamp(features: Sequence[int]) -> bytes:
    """Hold counts to one byte each."""
    try:
        return bytes(features)
    except ValueError:
        return bytes(max(0, min(f, 255)) for f in features)
