"""What the base answers: kernels, actions, constraints, elites."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import made_outcomes as made
import pytest

from mb_kb.knowledge import KnowledgeBase, entry_of
from mb_kb.spool import Entry
from mb_targets.model import Action, State, digest
from mb_targets.outcome import Level, Outcome

MATMUL = digest("matmul")
ZEN5 = made.on("cpu-amd-zen5-pocl")
NVIDIA = made.on("gpu-nvidia-h200")


def value(base: KnowledgeBase, state: State = made.STATE, action: Action = made.JAM) -> float:
    return next(v.estimate for v in base.actions(state) if v.action == action)


def test_a_kernel_never_seen_has_no_past(base: KnowledgeBase) -> None:
    assert base.past(MATMUL) is None


def test_a_past_counts_outcomes_refusals_and_gains(base: KnowledgeBase) -> None:
    for o in (
        made.outcome(),
        made.refused(number=1),
        made.refused("build", number=2),
        made.outcome(1.0, number=3),
    ):
        base.record(o)
    past = base.past(MATMUL)
    assert past is not None
    assert (past.count, past.refused, past.gains) == (4, 2, 1)
    assert dict(past.failures) == {"race": 1, "build": 1}
    assert past.last == 1e9 + 3


@pytest.mark.parametrize(
    "outcome",
    [
        made.outcome(5.0, level=Level.VALUES),
        made.outcome(1.01),
        made.outcome(5.0, chain=()),
        replace(made.outcome(5.0), total=replace(made.outcome(5.0).total, event_ratio=0.9)),
    ],
    ids=["not fully verified", "below the minimum", "the original itself", "slower by the device's clock"],
)
def test_what_is_no_verified_gain_is_never_among_the_best(base: KnowledgeBase, outcome: Outcome) -> None:
    base.record(outcome)
    past = base.past(MATMUL)
    assert past is not None
    assert (past.gains, past.best, past.newest[0].gain) == (0, (), False)


def test_the_best_of_each_device_comes_first(base: KnowledgeBase) -> None:
    for n, (v, state) in enumerate([(2.0, made.STATE), (4.0, made.STATE), (3.0, NVIDIA)]):
        base.record(made.outcome(v, number=n, state=state, action=Action("jam", (str(n),))))
    past = base.past(MATMUL)
    assert past is not None
    assert [(a.device, a.speedup.value) for a in past.best if a.speedup] == [
        ("cpu-amd-zen4-pocl", 4.0),
        ("gpu-nvidia-h200", 3.0),
        ("cpu-amd-zen4-pocl", 2.0),
    ]


def test_the_newest_are_newest_by_time_not_by_arrival(base: KnowledgeBase) -> None:
    for n in (5, 9, 2, 7):
        base.record(made.outcome(number=n))
    past = base.past(MATMUL)
    assert past is not None
    assert [a.created - 1e9 for a in past.newest] == [9, 7, 5]


def test_an_outcome_recorded_twice_counts_once(base: KnowledgeBase) -> None:
    base.record(made.outcome())
    base.record(made.outcome())
    assert base.stats().outcomes == 1


def test_an_action_never_tried_is_not_valued(base: KnowledgeBase) -> None:
    base.record(made.outcome(action=made.TILE))
    assert [v.action for v in base.actions(made.STATE)] == [made.TILE]


def test_one_outcome_is_shrunk_towards_no_gain(base: KnowledgeBase) -> None:
    base.record(made.outcome(2.0))
    assert 0 < value(base) < math.log(2)


def test_many_outcomes_are_believed(base: KnowledgeBase) -> None:
    for n in range(30):
        base.record(made.outcome(2.0, number=n))
    assert value(base) == pytest.approx(math.log(2), rel=0.05)


def test_more_outcomes_make_an_estimate_surer(base: KnowledgeBase) -> None:
    deviations = []
    for n in range(12):
        base.record(made.outcome(2.0, number=n))
        deviations.append(base.actions(made.STATE)[0].deviation)
    assert deviations == sorted(deviations, reverse=True)


def test_the_step_counts_before_the_total(base: KnowledgeBase) -> None:
    base.record(made.outcome(9.0, step=0.5))
    assert value(base) < 0


def test_the_same_vendors_device_says_more_than_another_vendors(base: KnowledgeBase) -> None:
    for n in range(30):
        base.record(made.outcome(2.0, number=n))
    intel = made.on("cpu-intel-icelake-intel")
    for n in range(2):
        for state in (ZEN5, intel):
            base.record(made.outcome(0.7, number=100 + n, state=state, kernel=state.device))
    assert value(base, ZEN5) > value(base, intel)


def test_a_thousand_outcomes_elsewhere_do_not_drown_ten_here(base: KnowledgeBase) -> None:
    base.add([made_entry(2.0, n, NVIDIA) for n in range(1000)])
    for n in range(10):
        base.record(made.outcome(0.5, number=2000 + n))
    assert value(base) < 0
    assert value(base, NVIDIA) == pytest.approx(math.log(2), rel=0.05)


def test_what_another_device_learned_is_where_this_one_starts(base: KnowledgeBase) -> None:
    for n in range(10):
        base.record(made.outcome(2.0, number=n))
    assert value(base, NVIDIA) > 0.3
    assert base.actions(NVIDIA)[0].tried == 0


def test_refusals_lower_the_chance_of_success_and_leave_the_gain(base: KnowledgeBase) -> None:
    base.record(made.outcome(2.0))
    before = base.actions(made.STATE)[0]
    for n in range(3):
        base.record(made.refused("race", number=1 + n))
    after = base.actions(made.STATE)[0]
    assert after.success < before.success
    assert (after.estimate, after.failures) == (before.estimate, (("race", 3),))


def test_a_measured_but_refused_variant_adds_nothing_to_the_gain(base: KnowledgeBase) -> None:
    fast = made.outcome(50.0)
    base.record(replace(fast, verdict=replace(fast.verdict, failure="race")))
    assert value(base) == 0


def test_constraints_say_how_near_they_were_seen(base: KnowledgeBase) -> None:
    other = replace(made.STATE, size_class=3)
    base.record(made.refused("bounds", "N % 8 != 0", number=1))
    base.record(made.refused("bounds", "M % 4 != 0", number=2, state=ZEN5))
    base.record(made.refused("bounds", "K % 2 != 0", number=3, state=other))
    assert [(c.condition, c.scope) for c in base.constraints(made.STATE)] == [
        ("N % 8 != 0", "device"),
        ("M % 4 != 0", "target"),
        ("K % 2 != 0", "family"),
    ]


def test_a_constraint_seen_again_is_counted(base: KnowledgeBase) -> None:
    for n in range(3):
        base.record(made.refused("bounds", "N % 8 != 0", number=n))
    assert [(c.action, c.failure, c.count) for c in base.constraints(made.STATE)] == [(made.JAM, "bounds", 3)]


def test_the_best_chain_survives_a_hundred_worse_ones(base: KnowledgeBase) -> None:
    base.record(made.outcome(40.0, chain=(made.TILE, made.JAM)))
    base.add([made_entry(2.0 + n / 1000, 1 + n, chain=(Action("jam", ("x", str(n))),)) for n in range(100)])
    assert base.elites(made.STATE, identity=MATMUL)[0].chain == (made.TILE, made.JAM)
    assert base.elites(made.STATE)[0].chain == (made.TILE, made.JAM)


def test_elites_come_from_the_kernel_the_state_its_likes_and_coarser_states(base: KnowledgeBase) -> None:
    def won(number: int, kernel: str, **change: Any) -> Outcome:
        state = replace(made.STATE, **change)
        return made.outcome(number=number, kernel=kernel, state=state, chain=(Action(f"from {kernel}"),))

    base.record(won(1, "matmul", family="scan"), made.VECTORS["matmul"])
    base.record(won(2, "saxpy"), made.VECTORS["saxpy"])
    base.record(won(3, "matmul again", family="gather"), made.VECTORS["matmul again"])
    base.record(won(4, "far", device="gpu-nvidia-h200"), [0] * 63 + [200])
    found = base.elites(made.STATE, made.VECTORS["matmul"], identity=MATMUL)
    assert [(e.chain[0].id, e.origin) for e in found] == [
        ("from matmul", "same kernel"),
        ("from saxpy", "same state"),
        ("from matmul again", "similar kernel"),
        ("from far", "coarser state"),
    ]


def test_elites_name_no_chain_twice(base: KnowledgeBase) -> None:
    for n, state in enumerate((made.STATE, ZEN5, NVIDIA)):
        base.record(made.outcome(2.0 + n, number=n, state=state), made.VECTORS["matmul"])
    assert len(base.elites(made.STATE, made.VECTORS["matmul"], identity=MATMUL)) == 1


def test_an_elite_of_this_device_comes_before_a_faster_one_of_another(base: KnowledgeBase) -> None:
    base.record(made.outcome(9.0, number=1, state=NVIDIA, action=made.TILE))
    base.record(made.outcome(2.0, number=2))
    assert [e.device for e in base.elites(made.STATE, identity=MATMUL)] == [
        "cpu-amd-zen4-pocl",
        "gpu-nvidia-h200",
    ]


def test_the_source_of_a_gain_is_kept(base: KnowledgeBase) -> None:
    won = made.outcome()
    base.record(won, source="__kernel void k() { /* \u00e9 */ }")
    elite = base.elites(made.STATE)[0]
    assert base.source(elite.variant) == "__kernel void k() { /* \u00e9 */ }"


def test_the_source_of_what_did_not_win_is_not_kept(base: KnowledgeBase) -> None:
    base.record(made.refused(), source="__kernel void k() {}")
    assert base.source(made.refused().provenance.variant) is None


def test_winners_are_those_of_the_very_state(base: KnowledgeBase) -> None:
    base.record(made.outcome(2.0, number=1))
    base.record(made.outcome(9.0, number=2, state=ZEN5, action=made.TILE))
    assert [e.chain for e in base.winners(made.STATE)] == [(made.JAM,)]


def test_outcomes_come_back_whole_and_in_order(base: KnowledgeBase) -> None:
    outcomes = made.crowd(30)
    for o in outcomes:
        base.record(o)
    assert list(base.outcomes()) == outcomes
    assert list(base.outcomes(MATMUL)) == []


def made_entry(v: float, number: int, state: State = made.STATE, **change: Any) -> Entry:
    return entry_of(made.outcome(v, number=number, state=state, **change))
