"""Count the base, and walk its log."""

from __future__ import annotations

from collections import Counter
from heapq import nsmallest
from itertools import islice
from pathlib import Path

from mb_kb import keys, records, tally
from mb_kb.retrieve import row_at, scan
from mb_kb.store import Transaction
from mb_kb.views import Stats
from mb_targets.model import State


def some_rows(t: Transaction, start: int, count: int) -> list[tuple[int, bytes, records.Row]]:
    """Read up to this many outcomes, from a number on: (number, id, row)."""
    c = t.cursor()
    found: list[tuple[int, bytes, records.Row]] = []
    if not c.set_range(keys.sequence_key(start)):
        return found
    for key, value in islice(c.iternext(), count):
        found.append((keys.sequence_of(key), value[:16], records.decode(value[16:])))
    return found


def stats(t: Transaction, path: Path, waiting: int) -> Stats:
    """Count outcomes, kernels and states from the derived tables, without reading the log."""
    kernels = vectors = outcomes = refused = gains = 0
    failures: Counter[str] = Counter()
    for _, raw in scan(t, keys.KERNEL, None):
        k = tally.kernel(raw)
        kernels += 1
        outcomes += k.count
        refused += k.refused
        gains += k.gains
        vectors += k.feature >= 0
        failures.update(k.failures)
    states, devices = _states(t)
    return Stats(
        outcomes,
        kernels,
        vectors,
        states,
        sum(1 for _ in scan(t, keys.BLOB, None)),
        waiting,
        path.stat().st_size,
        refused,
        gains,
        tuple(failures.most_common()),
        tuple(devices.most_common()),
    )


def kernels(t: Transaction, name: str, limit: int) -> list[bytes]:
    """Find kernels by name or by the beginning of their identity, the newest first; reads all kernels."""
    found = []
    for identity, raw in scan(t, keys.KERNEL, None):
        k = tally.kernel(raw)
        if not name or k.name == name or identity.hex().startswith(name.lower()):
            found.append((-k.last, identity))
    return [identity for _, identity in nsmallest(limit, found)]


def states(t: Transaction, identity: bytes) -> list[State]:
    """List the states of a kernel's outcomes; reads all of them."""
    seen: dict[State, None] = {}
    for _, number in scan(t, keys.SOURCE + identity, None):
        seen[records.state(row_at(t, int.from_bytes(number, "big")).state)] = None
    return list(seen)


def _states(t: Transaction) -> tuple[int, Counter[str]]:
    """Count the full states, and the outcomes of each device."""
    devices: Counter[str] = Counter()
    states = 0
    last = b""
    for key, raw in scan(t, keys.AGGREGATE + bytes([keys.EXACT]), None):
        state = key[:-8]
        if state != last:
            states, last = states + 1, state
            device = keys.unpack(bytes([keys.EXACT]) + state).device
        devices[device] += tally.aggregate(raw).tried
    return states, devices
