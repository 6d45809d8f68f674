"""Outcomes on disk."""

from __future__ import annotations

import math
from dataclasses import replace

import made_outcomes as made
import msgspec
import pytest

from mb_kb import records
from mb_targets.outcome import CounterExample, Level, Outcome, Speedup

OUTCOMES = [
    made.outcome(),
    made.outcome(step=1.2, level=Level.VALUES),
    made.refused("values", "N % 8 != 0"),
    *made.crowd(20),
]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_outcome_reads_back_as_it_was(outcome: Outcome) -> None:
    assert records.outcome(records.decode(records.encode(outcome))) == outcome


def test_a_counter_example_reads_back_as_it_was() -> None:
    wrong = made.refused("values")
    example = CounterExample("normal, seed 7", {"N": 7.0}, "C", 3, "nan", "1.5")
    wrong = replace(wrong, verdict=replace(wrong.verdict, counter_example=example))
    assert records.outcome(records.decode(records.encode(wrong))) == wrong


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_row_is_a_gain_exactly_when_its_outcome_is(outcome: Outcome) -> None:
    row = records.decode(records.encode(outcome))
    assert records.gain(row) == outcome.gain(records.MINIMUM_GAIN)
    assert records.full(row) == outcome.verdict.full


def test_a_gain_within_the_noise_that_was_measured_with_it_is_none() -> None:
    quiet = made.outcome()
    noisy = replace(quiet, minimum=quiet.total.speedup.low + 0.1)  # type: ignore[union-attr]
    assert records.gain(records.decode(records.encode(quiet)))
    assert not records.gain(records.decode(records.encode(noisy)))


def test_a_row_of_an_earlier_version_without_its_noise_reads() -> None:
    fields = msgspec.msgpack.decode(records.encode(made.outcome()))
    earlier = msgspec.msgpack.encode(fields[:-1])
    assert records.outcome(records.decode(earlier)) == made.outcome()


def test_a_row_of_a_later_version_with_more_fields_reads() -> None:
    fields = msgspec.msgpack.decode(records.encode(made.outcome()))
    later = msgspec.msgpack.encode([*fields, "energy", 3.5])
    assert records.outcome(records.decode(later)) == made.outcome()


def test_an_infinite_error_is_held_to_a_number() -> None:
    wrong = made.refused("values")
    wrong = replace(wrong, verdict=replace(wrong.verdict, error=float("inf")))
    assert math.isfinite(records.decode(records.encode(wrong)).verdict.error)


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan")])
def test_a_speed_up_that_cannot_be_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="above zero"):
        records.encode(replace(made.outcome(), step=Speedup(value, value, value)))


def test_the_effect_of_a_chain_is_not_credited_to_its_last_action() -> None:
    long = records.decode(records.encode(made.outcome(8.0, chain=(made.TILE, made.JAM))))
    assert records.effect(long) is None


def test_the_effect_of_a_lone_action_is_the_total() -> None:
    assert records.effect(records.decode(records.encode(made.outcome(8.0)))) == 8.0
