"""Derived tables agree with the log, however it was written."""

from __future__ import annotations

import random
from pathlib import Path

import made_outcomes as made
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mb_kb import keys, tally
from mb_kb.knowledge import KnowledgeBase, entry_of
from mb_kb.store import Transaction


def derived(base: KnowledgeBase) -> dict[bytes, tally.Derived]:
    """Give the derived rows, without the numbers that follow from the order of writing."""
    tables = (keys.AGGREGATE, keys.CONSTRAINT, keys.KERNEL)
    rows = base.store.read(lambda t: {k: tally.decode(k, v) for k, v in t.cursor() if k[:1] in tables})
    for row in rows.values():
        if isinstance(row, tally.Kernel) and row.best is not None:
            row.best = msgspec.structs.replace(row.best, sequence=0)
    return rows


def elites(base: KnowledgeBase) -> dict[bytes, list[bytes]]:
    def read(t: Transaction) -> dict[bytes, list[bytes]]:
        return {k: [w.id for w in tally.winners(v).rows] for k, v in t.cursor() if k[:1] == keys.ELITE}

    return base.store.read(read)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_a_recount_agrees_however_the_outcomes_were_grouped(
    tmp_path_factory: pytest.TempPathFactory, seed: int, sizes: list[int]
) -> None:
    base = KnowledgeBase(tmp_path_factory.mktemp("grouped"))
    outcomes = made.crowd(sum(sizes), seed)
    for size in sizes:
        group, outcomes = outcomes[:size], outcomes[size:]
        base.add([entry_of(o, made.VECTORS["saxpy"]) for o in group])
    report = base.verify()
    base.close()
    assert (report.outcomes, report.problems) == (sum(sizes), ())


def test_the_order_of_writing_changes_nothing(tmp_path: Path) -> None:
    outcomes = made.crowd(120)
    shuffled = random.Random(3).sample(outcomes, len(outcomes))
    one, other = KnowledgeBase(tmp_path / "one"), KnowledgeBase(tmp_path / "other")
    one.add([entry_of(o) for o in outcomes])
    for o in shuffled:
        other.record(o)
    assert derived(one) == derived(other)
    assert elites(one) == elites(other)
    one.close()
    other.close()


def test_a_wrong_table_is_found(base: KnowledgeBase) -> None:
    spoil(base)
    assert any("a recount gives" in p for p in base.verify().problems)


def test_a_wrong_table_is_repaired(base: KnowledgeBase) -> None:
    spoil(base)
    report = base.verify(repair=True)
    assert (report.repaired, report.problems) == (True, ())


def test_a_repair_keeps_which_kernel_each_vector_belongs_to(base: KnowledgeBase) -> None:
    spoil(base)
    base.verify(repair=True)
    assert [s.past.kernel for s in base.similar(made.VECTORS["matmul"])] == ["matmul"]


def test_tables_of_an_older_version_are_summed_up_anew_by_the_next_writer(base: KnowledgeBase) -> None:
    spoil(base)
    with base.store.writing():
        base.store.write(lambda t: t.put(keys.META + b"derived", b"\x00"))
    base.record(made.outcome(number=99))
    assert base.verify().problems == ()


def spoil(base: KnowledgeBase) -> None:
    """Make one aggregate wrong behind the base's back."""
    for n in range(5):
        base.record(made.outcome(number=n), made.VECTORS["matmul"])
    key = keys.AGGREGATE + keys.pack(made.STATE)[0] + keys.action_key(made.JAM)
    wrong = tally.Aggregate("jam", ("y", "8"), tried=77)
    with base.store.writing():
        base.store.write(lambda t: t.put(key, tally.encode(wrong)))
