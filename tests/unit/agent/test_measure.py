import numpy as np
import pytest

from mb_agent.measure import MINIMUM_GAIN, Pairs, decided, interval, minimum_gain, narrow
from mb_targets.outcome import Speedup


def pairs_of(ratios):
    return Pairs("cpu", cpu=[(r * 100.0, 100.0) for r in ratios], event=[(r, 1.0) for r in ratios])


def test_the_speedup_is_the_median_of_paired_ratios():
    assert interval([1.0, 2.0, 10.0]).value == 2.0


def test_the_interval_holds_the_median():
    found = interval(list(np.random.default_rng(1).normal(2.0, 0.1, 30)))
    assert found.low < found.value < found.high


def test_the_interval_is_the_same_each_time():
    ratios = list(np.random.default_rng(1).normal(2.0, 0.1, 30))
    assert interval(ratios) == interval(ratios)


@pytest.mark.parametrize("ratios", [[], [1.0, 0.0], [1.0, float("inf")], [1.0, float("nan")]])
def test_a_missing_measurement_is_an_error(ratios):
    with pytest.raises(ValueError, match="no measurement"):
        interval(ratios)


def test_a_race_stops_early_when_the_second_is_clearly_slower():
    assert decided(1.0)(pairs_of([0.5, 0.6]))


def test_a_race_goes_on_while_it_is_open():
    assert not decided(1.0)(pairs_of([0.9, 1.1, 1.0, 1.05]))


def test_a_race_stops_when_the_interval_is_above_what_it_is_worth():
    assert decided(1.0)(pairs_of([1.5, 1.6, 1.7]))


def test_a_final_stops_when_the_interval_is_narrow():
    assert narrow(0.05, 5)(pairs_of([2.0, 2.01, 2.0, 1.99, 2.0]))
    assert not narrow(0.05, 5)(pairs_of([2.0, 3.0, 2.0, 1.0, 2.5]))


def test_time_that_is_up_does_not_end_a_race_before_it_can_be_shown():
    late = narrow(0.0, 6, seconds=-1.0)
    assert not late(pairs_of([1.0, 2.0] * 2 + [1.0]))
    assert late(pairs_of([1.0, 2.0] * 3))


def test_a_race_ends_halfway_for_one_that_is_not_ahead():
    assert decided(1.02)(pairs_of([0.9, 1.1, 1.0, 1.05, 0.95]))
    assert not decided(1.02)(pairs_of([0.9, 1.1, 1.05, 1.05, 0.95]))


@pytest.mark.parametrize(("pairs", "said"), [(5, "screening only"), (6, "bootstrap 95 % interval")])
def test_too_few_pairs_are_for_screening_only(device, pairs, said):
    assert said in pairs_of([2.0] * pairs).measurement(device).method


def test_the_minimum_gain_follows_a_noisy_control():
    assert minimum_gain(Speedup(1.0, 0.99, 1.01)) == MINIMUM_GAIN
    assert minimum_gain(Speedup(1.0, 0.9, 1.01)) == pytest.approx(1 / 0.9)
    assert minimum_gain(Speedup(1.05, 1.0, 1.12)) == 1.12


def test_the_event_ratio_is_kept_beside_the_cpu_ratio(device):
    pairs = Pairs("cpu", cpu=[(300.0, 100.0)] * 5, event=[(90.0, 100.0)] * 5)
    measured = pairs.measurement(device)
    assert measured.speedup.value == 3.0
    assert measured.event_ratio == 0.9
    assert not measured.faster(1.03)
