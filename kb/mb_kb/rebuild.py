"""Compare the derived tables with the log, and sum them up anew from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mb_kb import append, health, keys, records, tally
from mb_kb.retrieve import scan
from mb_kb.store import Transaction

DERIVED = 1  # counts up when a derived table changes its meaning; older ones are then summed up anew
SHOWN = 20  # problems described one by one

_version_key = keys.META + b"derived"
_derived_tables = (keys.AGGREGATE, keys.CONSTRAINT, keys.ELITE, keys.KERNEL, keys.SOURCE)


@dataclass(frozen=True, slots=True)
class Report:
    """What ``verify`` found: how much was looked at, and the first problems in words.

    Attributes:
        outcomes: Read from the log.
        rows: Derived rows compared.
        found: How many problems there are.
        problems: The first of them.
        repaired: Whether the derived tables were summed up anew.
    """

    outcomes: int
    rows: int
    found: int
    problems: tuple[str, ...]
    repaired: bool = False


def verify(t: Transaction, path: Path) -> Report:
    """Check the file's structure, recount the log, and compare every derived row with the recount."""
    problems = health.structure(path)
    sums = tally.Tally()
    outcomes = 0
    for number, id_, row in _log(t):
        if isinstance(row, msgspec.DecodeError):
            problems.append(f"outcome {number} cannot be read: {row}")
            continue
        outcomes += 1
        sums.add(row, id_, number)
        known = t.get(keys.SOURCE + keys.identity_key(row.identity) + id_)
        if known is None or int.from_bytes(known, "big") != number:
            problems.append(f"outcome {number} is not in its kernel's index")
    indexed = sum(1 for _ in scan(t, keys.SOURCE, None))
    if indexed != outcomes:
        problems.append(f"the index of kernels lists {indexed} outcomes, the log holds {outcomes}")
    rows = _compare(t, sums, problems)
    return Report(outcomes, rows, len(problems), tuple(problems[:SHOWN]))


def rebuild(t: Transaction) -> None:
    """Sum up all derived tables anew from the log; outcomes that cannot be read are left out, and kept."""
    for table in _derived_tables:
        _clear(t, table)
    sums = tally.Tally()
    for number, id_, row in _log(t):
        if not isinstance(row, msgspec.DecodeError):
            sums.add(row, id_, number)
            t.put(keys.SOURCE + keys.identity_key(row.identity) + id_, append.FIRST_SEEN.pack(number))
    append.merge(t, sums)
    for number, identity in list(append.vectors(t)):
        raw = t.get(keys.KERNEL + identity)
        if raw is not None:
            kernel = tally.kernel(raw)
            kernel.feature = number
            t.put(keys.KERNEL + identity, tally.encode(kernel))
    t.put(_version_key, msgspec.msgpack.encode(DERIVED))


def bring_up_to_date(t: Transaction) -> None:
    """Rebuild derived tables that an older version of this program made."""
    raw = t.get(_version_key)
    if raw is None and append.next_sequence(t) == 0:
        t.put(_version_key, msgspec.msgpack.encode(DERIVED))
    elif raw is None or msgspec.msgpack.decode(raw, type=int) < DERIVED:
        rebuild(t)


def _compare(t: Transaction, sums: tally.Tally, problems: list[str]) -> int:
    counted = 0
    for key, row in sums.rows():
        counted += 1
        raw = t.get(key)
        stored = _stored(key, raw)
        if isinstance(stored, tally.Kernel) and isinstance(row, tally.Kernel):
            row.feature = stored.feature  # given by the vectors, not by the log
        if stored != row:
            problems.append(f"a recount gives {row}, the table says {stored}")
    there = sum(1 for table in _derived_tables[:-1] for _ in scan(t, table, None))
    if there != counted:
        problems.append(f"the derived tables hold {there} rows, a recount gives {counted}")
    for number, identity in append.vectors(t):
        key = keys.KERNEL + identity
        owner = _stored(key, t.get(key))
        if not isinstance(owner, tally.Kernel) or owner.feature != number:
            problems.append(f"vector {number} belongs to no kernel")
    return counted


def _stored(key: bytes, raw: bytes | None) -> tally.Derived | None:
    try:
        return None if raw is None else tally.decode(key, raw)
    except msgspec.DecodeError:
        return None


def _log(t: Transaction) -> Iterator[tuple[int, bytes, records.Row | msgspec.DecodeError]]:
    c = t.cursor()
    found = c.set_range(keys.OUTCOME)
    while found:
        value = c.value()
        row: records.Row | msgspec.DecodeError
        try:
            row = records.decode(value[16:])
        except msgspec.DecodeError as e:
            row = e
        yield keys.sequence_of(c.key()), value[:16], row
        found = c.next()


def _clear(t: Transaction, table: bytes) -> None:
    c = t.cursor()
    found = c.set_range(table)
    while found and c.key()[:1] == table:
        found = c.delete()
