"""Look things up: by kernel, by state, by coarser states. Each function reads inside one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from mb_kb import blend, keys, records, tally
from mb_kb.store import Transaction
from mb_kb.views import ActionValue, Constraint, Elite, Origin
from mb_targets.model import Action, State
from mb_targets.outcome import Speedup

MOST_ROWS = 4096  # read of one level of one table


def scan(t: Transaction, prefix: bytes, most: int | None = MOST_ROWS) -> Iterator[tuple[bytes, bytes]]:
    """Give what follows a prefix in each key that has it, and the value, in order."""
    c = t.cursor()
    if not c.set_range(prefix):
        return
    length = len(prefix)
    for key, value in islice(c.iternext(), most):
        if not key.startswith(prefix):
            return
        yield key[length:], value


def row_at(t: Transaction, sequence: int) -> records.Row:
    """Read one outcome by its number.

    Raises:
        msgspec.DecodeError: It is not there, or it is no outcome.
    """
    return records.decode((t.get(keys.sequence_key(sequence)) or b"")[16:])


def actions(t: Transaction, state: State) -> list[ActionValue]:
    """Value every action tried in this state or a coarser one, best estimate first."""
    levels = [
        {tail: tally.aggregate(raw) for tail, raw in scan(t, keys.AGGREGATE + prefix)}
        for prefix in keys.pack(state)
    ]
    values = [blend.blend([rows.get(tail) for rows in levels]) for tail in levels[0]]
    return sorted(values, key=lambda v: (-v.estimate, str(v.action)))


def constraints(t: Transaction, state: State) -> list[Constraint]:
    """List conditions under which actions failed, the nearest scope first, then the most frequent."""
    found: dict[bytes, Constraint] = {}
    order: list[tuple[int, int, str, bytes]] = []
    prefixes = keys.pack(state)
    for distance, level in enumerate(reversed(tally.CONSTRAINT_LEVELS)):
        for tail, raw in scan(t, keys.CONSTRAINT + prefixes[level]):
            if tail in found:
                continue
            c = tally.condition(raw)
            action = Action(c.action, c.parameters)
            scope = keys.LEVELS[level].name
            found[tail] = Constraint(action, c.condition, c.failure, c.count, scope)
            order.append((distance, -c.count, str(action), tail))
    return [found[tail] for *_, tail in sorted(order)]


def own_elites(t: Transaction, identity: bytes, device: str, limit: int, similarity: float) -> list[Elite]:
    """List a kernel's winning chains, those of this device first."""
    origin: Origin = "same kernel" if similarity == 1.0 else "similar kernel"
    here = _elites(t, own_winners(t, identity, device, limit), origin, similarity)
    if len(here) < limit:
        elsewhere = _elites(t, own_winners(t, identity, "", limit), origin, similarity)
        here += [e for e in elsewhere if e.device != device]
    return here[:limit]


def winners(t: Transaction, state: State, limit: int) -> list[Elite]:
    """List the winning chains of this very state, best first."""
    raw = t.get(keys.ELITE + keys.ANY_KERNEL + keys.pack(state)[keys.EXACT])
    return [] if raw is None else _elites(t, tally.winners(raw).rows[:limit], "same state", 0.0)


def own_winners(t: Transaction, identity: bytes, device: str, limit: int) -> list[tally.Winner]:
    """List a kernel's wins, the best of each device first; on one device only where one is named."""
    if not limit:
        return []
    if device:
        raw = t.get(keys.ELITE + keys.ONE_KERNEL + identity + keys.device_key(device))
        return [] if raw is None else tally.winners(raw).rows[:limit]
    groups = [tally.winners(raw).rows for _, raw in scan(t, keys.ELITE + keys.ONE_KERNEL + identity)]
    firsts = sorted((g[0] for g in groups if g), key=lambda w: w.rank)
    rest = sorted((w for g in groups for w in g[1:]), key=lambda w: w.rank)
    return (firsts + rest)[:limit]


def state_elites(t: Transaction, state: State, limit: int) -> Iterator[Elite]:
    """Give the winning chains of this state, then of coarser and coarser ones."""
    for level, prefix in reversed(list(enumerate(keys.pack(state)))):
        raw = t.get(keys.ELITE + keys.ANY_KERNEL + prefix)
        if raw is not None:
            origin: Origin = "same state" if level == keys.EXACT else "coarser state"
            yield from _elites(t, tally.winners(raw).rows[:limit], origin, 0.0)


def distinct(elites: Sequence[Elite], limit: int) -> list[Elite]:
    """Keep the first elite of each chain."""
    seen: dict[tuple[Action, ...], Elite] = {}
    for e in elites:
        seen.setdefault(e.chain, e)
    return list(seen.values())[:limit]


def _elites(t: Transaction, rows: Sequence[tally.Winner], origin: Origin, similarity: float) -> list[Elite]:
    return [
        Elite(
            records.chain(row),
            Speedup(w.value, w.low, w.high),
            origin,
            row.kernel,
            row.identity,
            row.state.device,
            similarity,
            row.provenance.variant,
        )
        for w in rows
        for row in (row_at(t, w.sequence),)
    ]
