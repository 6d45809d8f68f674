"""What became of single kernels, put in short for display."""

from __future__ import annotations

from collections import Counter

from mb_kb import keys, records, tally
from mb_kb.retrieve import own_winners, row_at
from mb_kb.store import Store, Transaction
from mb_kb.views import Attempt, KernelPast
from mb_targets.outcome import Speedup

REMEMBERED = 10_000  # outcomes kept in short: they never change


class History:
    """Sums up kernels; outcomes that were shown once are kept in short."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._opening = store.opening
        self._seen: dict[int, Attempt] = {}

    def past(
        self, t: Transaction, identity: bytes, best: int, newest: int, device: str = ""
    ) -> KernelPast | None:
        """Sum up a kernel, with this many of its best and newest outcomes; a device restricts the best."""
        raw = t.get(keys.KERNEL + identity)
        if raw is None:
            return None
        k = tally.kernel(raw)
        if best == 1 and not device:
            winners = [] if k.best is None else [k.best]
        else:
            winners = own_winners(t, identity, device, best)
        return KernelPast(
            k.identity or identity.hex(),
            k.name,
            k.target,
            k.count,
            k.refused,
            k.gains,
            tuple(Counter(k.failures).most_common()),
            k.last,
            tuple([self._attempt(t, w.sequence) for w in winners]),
            tuple([self._attempt(t, number) for number in _newest(t, identity, newest)]),
        )

    def glimpse(self, t: Transaction, identity: bytes, device: str) -> KernelPast | None:
        """Sum up a kernel with its one best outcome, or its newest where nothing won."""
        found = self.past(t, identity, 1, 0, device)
        return found if found is None or found.best else self.past(t, identity, 0, 1)

    def _attempt(self, t: Transaction, number: int) -> Attempt:
        if self._opening != self._store.opening or len(self._seen) > REMEMBERED:
            self._opening = self._store.opening
            self._seen.clear()
        known = self._seen.get(number)
        if known is None:
            known = self._seen[number] = attempt(row_at(t, number))
        return known


def attempt(row: records.Row) -> Attempt:
    """Put an outcome in short."""
    return Attempt(
        " + ".join([f"{name}({', '.join(parameters)})" for name, parameters in row.chain]),
        row.state.device,
        None if row.total is None else Speedup(*row.total.speedup),
        bool(row.chain) and records.gain(row),
        row.verdict.failure,
        row.note,
        row.provenance.created,
        row.provenance.variant,
    )


def _newest(t: Transaction, identity: bytes, limit: int) -> list[int]:
    """Give the numbers of a kernel's newest outcomes: its index is sorted by time."""
    if not limit:
        return []
    prefix = keys.SOURCE + identity
    c = t.cursor()
    found = c.prev() if c.set_range(keys.after(prefix)) else c.last()
    numbers: list[int] = []
    while found and len(numbers) < limit and c.key().startswith(prefix):
        numbers.append(int.from_bytes(c.value(), "big"))
        found = c.prev()
    return numbers
