"""The knowledge base as its users see it: record outcomes, ask what is known."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from mb_kb import append, census, keys, rebuild, records, retrieve, spool
from mb_kb.errors import Damaged, Full, Locked
from mb_kb.history import History
from mb_kb.similar import Neighbours
from mb_kb.store import LOCK_SECONDS, MAP_BYTES, Store, Transaction
from mb_kb.views import ActionValue, Constraint, Elite, KernelPast, SimilarKernel, Stats
from mb_targets.model import State
from mb_targets.outcome import Outcome

ALIKE = 0.8  # cosine from which a similar kernel's chains are worth trying
BATCH = 100_000  # outcomes in one transaction of a bulk write
VERIFY_SECONDS = 30.0  # waited for other writers
SHOWN = 3  # best and newest outcomes in a kernel's past

T = TypeVar("T")
_open: dict[Path, KnowledgeBase] = {}
_opening = threading.Lock()


class KnowledgeBase:
    """What was tried and what came of it.

    One object a process for each folder: take it from ``open_base``. Threads may share it; a forked child may
    not. A failure is a KnowledgeError whose message can be shown as it is.
    """

    def __init__(self, folder: Path, map_bytes: int = MAP_BYTES) -> None:
        self.folder = folder
        self.store = Store(folder, map_bytes)
        self._neighbours = Neighbours(self.store)
        self._history = History(self.store)

    def close(self) -> None:
        """Close the file."""
        self.store.close()

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences for the user about what went wrong with the file and what was done about it."""
        refused = [str(self.store.readonly)] if self.store.readonly else []
        return (*self.store.notices, *refused)

    def record(self, outcome: Outcome, features: Sequence[int] = (), source: str = "") -> bool:
        """Keep one outcome; it is on the disk when this returns.

        Args:
            outcome: What came of an attempt. One that is already known is not counted again.
            features: Its kernel's vector; the first one given for a kernel is kept.
            source: The variant's text, kept where the outcome is a verified gain.

        Returns:
            False when another process held the base for too long and the outcome went to the spool, from
            where the next writer takes it.

        Raises:
            KnowledgeError: It could not be kept.
            ValueError: It claims a speed-up that is no positive number.
        """
        entry = entry_of(outcome, features, source)
        try:
            self.add([entry])
        except (Locked, Full, Damaged) as e:
            spool.put(self.spool, entry)
            if not isinstance(e, Locked):
                self.store.notices.append(str(e))
            return False
        return True

    def add(self, entries: Iterable[spool.Entry], seconds: float = LOCK_SECONDS) -> int:
        """Append prepared outcomes, and those that wait in the spool, in as few transactions as is sensible.

        Returns:
            How many were not known before.

        Raises:
            KnowledgeError: They, or those from some batch on, were not added.
        """
        added = 0
        with self.store.writing(seconds):
            spooled = spool.waiting(self.spool)
            everything = chain(spool.read(spooled), entries)
            while batch := list(islice(everything, BATCH)):
                added += self._write(batch)
            for path in spooled:
                path.unlink(missing_ok=True)
        return added

    def _write(self, batch: list[spool.Entry]) -> int:
        work = partial(_append, batch=batch)
        try:
            return self.store.write(work)
        except Damaged as e:
            # The file is sound, or it would have been replaced: some sum in it cannot be read.
            self.store.write(rebuild.rebuild)
            self.store.notices.append(f"Part of the knowledge base was summed up anew: {e}")
            return self.store.write(work)

    def actions(self, state: State) -> list[ActionValue]:
        """Value every action tried in this state or in coarser ones (``blend``), best estimate first."""
        return self.store.read(lambda t: retrieve.actions(t, state))

    def winners(self, state: State, limit: int = SHOWN) -> list[Elite]:
        """List the chains that won in this very state, best first: one look-up, for display."""
        return self.store.read(lambda t: retrieve.winners(t, state, limit))

    def constraints(self, state: State) -> list[Constraint]:
        """List the conditions under which actions were seen to fail, the nearest scope first."""
        return self.store.read(lambda t: retrieve.constraints(t, state))

    def past(self, identity: str, best: int = SHOWN, newest: int = SHOWN) -> KernelPast | None:
        """Sum up what is known of a kernel; None when nothing is."""
        key = keys.identity_key(identity)
        return self.store.read(lambda t: self._history.past(t, key, best, newest))

    def kernels(self, name: str = "", limit: int = 20) -> list[KernelPast]:
        """List kernels with their one best outcome, the newest first.

        Args:
            name: Only those of this name, or whose identity begins with it; empty for all.
        """

        def look_up(t: Transaction) -> list[KernelPast]:
            found = (self._history.past(t, identity, 1, 0) for identity in census.kernels(t, name, limit))
            return [p for p in found if p is not None]

        return self.store.read(look_up)

    def states(self, identity: str) -> list[State]:
        """List the states that a kernel was seen in."""
        key = keys.identity_key(identity)
        return self.store.read(lambda t: census.states(t, key))

    def similar(
        self, features: Sequence[int], limit: int = 5, device: str = "", target: str = "opencl", but: str = ""
    ) -> list[SimilarKernel]:
        """List kernels that look alike, most similar first.

        The first question about a vector looks at every kernel (some milliseconds at 20,000); the answer
        is then kept, and a later one costs a few look-ups. Ask once when a document opens, so that a
        hover is fast.

        Args:
            features: A vector from the same target.
            device: Restrict the best outcomes shown to this device.
            but: Identity of a kernel to leave out: the one that is asked about.
        """
        nearest = self._neighbours.nearest(features, limit + 1, target)
        left_out = keys.identity_key(but) if but else b""

        def look_up(t: Transaction) -> list[SimilarKernel]:
            found = [(cosine, identity) for cosine, identity in nearest if identity != left_out][:limit]
            looked_up = [(cosine, self._history.glimpse(t, identity, device)) for cosine, identity in found]
            return [SimilarKernel(cosine, p) for cosine, p in looked_up if p is not None]

        return self.store.read(look_up)

    def elites(
        self, state: State, features: Sequence[int] = (), limit: int = 8, identity: str = ""
    ) -> list[Elite]:
        """List winning chains to start a search from, no chain twice.

        First this kernel's own, then this state's, then those of similar kernels, then coarser states'.
        """
        nearest = self._neighbours.nearest(features, limit, state.target) if features else []
        own = keys.identity_key(identity) if identity else b""

        def look_up(t: Transaction) -> list[Elite]:
            found = retrieve.own_elites(t, own, state.device, limit, 1.0) if own else []
            by_state = list(retrieve.state_elites(t, state, limit))
            found += [e for e in by_state if e.origin == "same state"]
            for cosine, other in nearest:
                if other != own and cosine >= ALIKE:
                    found += retrieve.own_elites(t, other, state.device, 2, min(cosine, 0.9999))
            found += [e for e in by_state if e.origin == "coarser state"]
            return retrieve.distinct(found, limit)

        return self.store.read(look_up)

    def source(self, variant: str) -> str | None:
        """Give the text of a verified variant by its hash, None when it was not kept."""
        key = keys.BLOB + keys.identity_key(variant)
        raw = self.store.read(lambda t: bytes(t.get(key) or b""))
        return zlib.decompress(raw).decode() if raw else None

    def outcomes(self, identity: str = "", start: int = 0) -> Iterator[Outcome]:
        """Give outcomes oldest entry first, all or those of one kernel, from the given number on."""
        for _, row in self.rows(start):
            if not identity or row.identity == identity:
                yield records.outcome(row)

    def rows(self, start: int = 0, batch: int = 1000) -> Iterator[tuple[bytes, records.Row]]:
        """Give ids and rows in the order they were added; no transaction is held between batches."""
        while True:
            found = self.store.read(partial(census.some_rows, start=start, count=batch))
            if not found:
                return
            for sequence, id_, row in found:
                yield id_, row
                start = sequence + 1

    def stats(self) -> Stats:
        """Count what the base holds."""
        waiting = len(spool.waiting(self.spool))
        return self.store.read(lambda t: census.stats(t, self.store.path, waiting))

    def verify(self, repair: bool = False) -> rebuild.Report:
        """Check the file and recount it; with ``repair``, sum the derived tables up anew if they differ.

        Takes the right to write meanwhile: a minute or so at a million outcomes.

        Raises:
            KnowledgeError: The base could not be read, or is being written to.
        """
        with self.store.writing(VERIFY_SECONDS):
            report = self.store.read(lambda t: rebuild.verify(t, self.store.path))
            if repair and report.found:
                self.store.write(rebuild.rebuild)
                report = self.store.read(lambda t: rebuild.verify(t, self.store.path))
                report = replace(report, repaired=True)
        return report

    @property
    def spool(self) -> Path:
        """Folder of the outcomes that wait for a writer."""
        return self.folder / "spool"


def open_base(folder: Path) -> KnowledgeBase:
    """Open the knowledge base in a folder, or give the one that this process has open already.

    Raises:
        KnowledgeError: It can be neither opened nor made.
    """
    known = _open.get(folder)
    if known is not None and not known.store.closed:
        return known
    place = folder.expanduser().resolve()
    with _opening:
        base = _open.get(place)
        if base is None or base.store.closed:
            base = _open[place] = KnowledgeBase(place)
        _open[folder] = base
        return base


def _append(t: Transaction, batch: list[spool.Entry]) -> int:
    rebuild.bring_up_to_date(t)
    return append.append(t, batch)


def entry_of(outcome: Outcome, features: Sequence[int] = (), source: str = "") -> spool.Entry:
    """Prepare an outcome for the base; its id follows from its time and content."""
    payload = records.encode(outcome)
    id_ = keys.outcome_id(outcome.provenance.created, payload)
    return spool.Entry(id_, payload, append.clamp(features), source)
