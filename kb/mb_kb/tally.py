"""Derived tables: what is summed up while outcomes are appended, and can be summed up again from them.

Every row merges with another of the same key, and merging is exact (sums are integers) and does not depend on
how outcomes were grouped into writes, so a recount of the log gives the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import msgspec

from mb_kb import keys, records
from mb_targets.model import Action

UNIT = 10_000  # logarithms of speed-ups are summed in units of 1e-4, about 0.01 %
KEPT = 8  # elites kept of each state and level, and of each kernel and device
CONSTRAINT_LEVELS = (0, 4, keys.EXACT)  # family, everything but the device, exact


class Aggregate(msgspec.Struct, array_like=True):
    """What came of one action in one state, or in all states below a coarser one.

    Attributes:
        tried: Attempts.
        verified: Attempts that were fully verified.
        measured: Attempts not refused whose own effect was measured; the sums are over these.
        total: Sum of the logarithms of the effects, in units.
        squares: Sum of their squares, in units squared.
        best: Largest effect that was fully verified, 0 when there was none.
        last: Time of the newest attempt.
        failures: Refused attempts by the check that refused them.
    """

    action: str
    parameters: tuple[str, ...]
    tried: int = 0
    verified: int = 0
    measured: int = 0
    total: int = 0
    squares: int = 0
    best: float = 0.0
    last: float = 0.0
    failures: dict[str, int] = {}

    def merge(self, other: Aggregate) -> None:
        """Add another row's outcomes."""
        self.tried += other.tried
        self.verified += other.verified
        self.measured += other.measured
        self.total += other.total
        self.squares += other.squares
        self.best = max(self.best, other.best)
        self.last = max(self.last, other.last)
        _add(self.failures, other.failures)

    def copy(self) -> Aggregate:
        """Give a row that can be merged into without changing this one."""
        return msgspec.structs.replace(self, failures=dict(self.failures))


class Condition(msgspec.Struct, array_like=True):
    """A condition under which an action was seen to fail."""

    action: str
    parameters: tuple[str, ...]
    condition: str
    failure: str
    count: int = 0
    last: float = 0.0

    def merge(self, other: Condition) -> None:
        """Add another row's outcomes."""
        self.count += other.count
        self.last = max(self.last, other.last)

    def copy(self) -> Condition:
        """Give a row that can be merged into without changing this one."""
        return msgspec.structs.replace(self)


class Winner(msgspec.Struct, array_like=True, frozen=True):
    """A verified gain, and the number of the outcome that tells the rest."""

    low: float
    value: float
    high: float
    id: bytes
    sequence: int
    chain: bytes

    @property
    def rank(self) -> tuple[float, bytes]:
        """Sort by the interval's lower end, best first; the older of two equals wins."""
        return (-self.low, self.id)


class Winners(msgspec.Struct, array_like=True):
    """The best chains, no chain twice, best first."""

    rows: list[Winner]

    def merge(self, other: Winners) -> None:
        """Keep the best of both."""
        best: dict[bytes, Winner] = {}
        for w in sorted(self.rows + other.rows, key=lambda w: w.rank):
            best.setdefault(w.chain, w)
        self.rows = list(best.values())[:KEPT]


class Kernel(msgspec.Struct, array_like=True):
    """What is known of one kernel.

    Attributes:
        feature: The number of its vector, -1 without one.
        identity: Its digest where that is not what the row's key says.
        best: Its best win on any device.
    """

    name: str
    target: str
    count: int = 0
    refused: int = 0
    gains: int = 0
    last: float = 0.0
    failures: dict[str, int] = {}
    feature: int = -1
    identity: str = ""
    best: Winner | None = None

    def merge(self, other: Kernel) -> None:
        """Add another row's outcomes; the newest gives the name."""
        if other.last >= self.last:
            self.name, self.target = other.name, other.target
        self.count += other.count
        self.refused += other.refused
        self.gains += other.gains
        self.last = max(self.last, other.last)
        _add(self.failures, other.failures)
        self.feature = max(self.feature, other.feature)
        wins = [w for w in (self.best, other.best) if w is not None]
        self.best = min(wins, key=lambda w: w.rank, default=None)


R = TypeVar("R", Aggregate, Condition)
Rows: TypeAlias = dict[tuple[tuple[bytes, ...], bytes], R]  # by a state's prefixes and the key's tail
Derived: TypeAlias = Aggregate | Condition | Winners | Kernel

encode = msgspec.msgpack.Encoder().encode
_aggregates = msgspec.msgpack.Decoder(Aggregate)
_conditions = msgspec.msgpack.Decoder(Condition)
_winners = msgspec.msgpack.Decoder(Winners)
_kernels = msgspec.msgpack.Decoder(Kernel)
aggregate = _aggregates.decode
condition = _conditions.decode
winners = _winners.decode
kernel = _kernels.decode
_DECODERS: dict[bytes, Callable[[bytes], Derived]] = {
    keys.AGGREGATE: aggregate,
    keys.CONSTRAINT: condition,
    keys.ELITE: winners,
    keys.KERNEL: kernel,
}


def decode(key: bytes, raw: bytes) -> Derived:
    """Read a derived row of whichever table its key belongs to."""
    return _DECODERS[key[:1]](raw)


def merged(key: bytes, raw: bytes, more: Derived) -> Derived:
    """Add sums to a stored row of the same key."""
    known: Any = _DECODERS[key[:1]](raw)
    known.merge(more)
    row: Derived = known
    return row


class Tally:
    """What a run of outcomes adds to the derived tables.

    Sums are kept at full states only and rolled up to the coarser levels when they are read out.
    """

    def __init__(self) -> None:
        self._aggregates: Rows[Aggregate] = {}
        self._conditions: Rows[Condition] = {}
        self._winners: dict[tuple[bytes, ...], list[Winner]] = {}
        self._own_winners: dict[bytes, list[Winner]] = {}
        self._kernels: dict[bytes, Kernel] = {}

    def add(self, row: records.Row, id_: bytes, sequence: int) -> None:
        """Count one outcome."""
        prefixes = _prefixes(row.state)
        self._add_aggregate(row, prefixes)
        w = _win(row, id_, sequence)
        self._add_kernel(row, w)
        if row.constraint:
            self._add_condition(row, prefixes)
        if w is not None:
            self._winners.setdefault(prefixes, []).append(w)
            own = keys.identity_key(row.identity) + keys.device_key(row.state.device)
            self._own_winners.setdefault(own, []).append(w)

    def rows(self) -> Iterator[tuple[bytes, Derived]]:
        """Give every row to merge into the derived tables, by key, each key once."""
        yield from _rolled_up(keys.AGGREGATE, self._aggregates, range(len(keys.LEVELS)))
        yield from _rolled_up(keys.CONSTRAINT, self._conditions, CONSTRAINT_LEVELS)
        for level in range(len(keys.LEVELS)):
            yield from self._elites(level)
        for own, rows in self._own_winners.items():
            yield keys.ELITE + keys.ONE_KERNEL + own, _best(rows)
        for identity, k in self._kernels.items():
            yield keys.KERNEL + identity, k

    def _add_aggregate(self, row: records.Row, prefixes: tuple[bytes, ...]) -> None:
        key = (prefixes, _tail(row.action))
        a = self._aggregates.get(key)
        if a is None:
            a = self._aggregates[key] = Aggregate(*row.action)
        a.tried += 1
        a.last = max(a.last, row.provenance.created)
        if row.verdict.failure:
            a.failures[row.verdict.failure] = a.failures.get(row.verdict.failure, 0) + 1
            return
        effect = records.effect(row)
        full = records.full(row)
        a.verified += full
        if effect is not None:
            log = round(math.log(effect) * UNIT)
            a.measured += 1
            a.total += log
            a.squares += log * log
            if full:
                a.best = max(a.best, effect)

    def _add_kernel(self, row: records.Row, win: Winner | None) -> None:
        key = keys.identity_key(row.identity)
        k = self._kernels.get(key)
        if k is None:
            identity = "" if row.identity == key.hex() else row.identity
            k = self._kernels[key] = Kernel(row.kernel, row.state.target, identity=identity)
        failure = row.verdict.failure
        failures = {failure: 1} if failure else {}
        k.merge(
            Kernel(
                row.kernel,
                row.state.target,
                1,
                int(bool(failure)),
                int(win is not None),
                row.provenance.created,
                failures,
                best=win,
            )
        )

    def _add_condition(self, row: records.Row, prefixes: tuple[bytes, ...]) -> None:
        key = (prefixes, _tail(row.action, row.constraint, row.verdict.failure))
        c = self._conditions.get(key)
        if c is None:
            c = self._conditions[key] = Condition(*row.action, row.constraint, row.verdict.failure)
        c.count += 1
        c.last = max(c.last, row.provenance.created)

    def _elites(self, level: int) -> Iterator[tuple[bytes, Winners]]:
        merged: dict[bytes, list[Winner]] = {}
        for prefixes, rows in self._winners.items():
            merged.setdefault(prefixes[level], []).extend(rows)
        for prefix, rows in merged.items():
            yield keys.ELITE + keys.ANY_KERNEL + prefix, _best(rows)


def _win(row: records.Row, id_: bytes, sequence: int) -> Winner | None:
    if row.total is None or not row.chain or not records.gain(row):
        return None
    value, low, high = row.total.speedup
    return Winner(low, value, high, id_, sequence, keys.chain_key(row.chain))


@lru_cache(maxsize=4096)
def _prefixes(state: records.StateRow) -> tuple[bytes, ...]:
    return keys.pack(records.state(state))


@lru_cache(maxsize=4096)
def _tail(action: records.ActionRow, *more: str) -> bytes:
    return keys.action_key(Action(*action), *more)


def _rolled_up(table: bytes, rows: Rows[R], levels: Sequence[int]) -> Iterator[tuple[bytes, R]]:
    """Give the rows of each level, finest first; a level is summed up from the one before it."""
    for level in reversed(levels):
        if level != keys.EXACT:
            rows = _coarser(rows, level)
        for (prefixes, tail), row in rows.items():
            yield table + prefixes[level] + tail, row


def _coarser(rows: Rows[R], level: int) -> Rows[R]:
    found: dict[tuple[bytes, bytes], R] = {}
    merged: Rows[R] = {}
    for (prefixes, tail), row in rows.items():
        known = found.get((prefixes[level], tail))
        if known is None:
            copy = row.copy()
            found[prefixes[level], tail] = merged[prefixes, tail] = copy
        else:
            known.merge(row)
    return merged


def _best(rows: Iterable[Winner]) -> Winners:
    best = Winners([])
    best.merge(Winners(list(rows)))
    return best


def _add(into: dict[str, int], more: dict[str, int]) -> None:
    for name, count in more.items():
        into[name] = into.get(name, 0) + count
