import numpy as np
import pytest

from mb_agent.tolerance import compare, expect, written_by
from mb_targets.model import Argument

OUT = Argument("out", "out", "f32", "N")
ALL = slice(None)


def rows(seed, shape, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def sequential(x):
    """Sum each row one element after the other, as a naive kernel does."""
    return np.add.accumulate(x, axis=1, dtype=np.float32)[:, -1].copy()


def blocked(x, lanes=16):
    """Sum each row in lanes, as a vectorized kernel does."""
    wide = x[:, : x.shape[1] // lanes * lanes].reshape(x.shape[0], -1, lanes)
    tail = x[:, wide.shape[1] * lanes :]
    return sequential(np.concatenate([np.add.accumulate(wide, axis=1)[:, -1], tail], axis=1))


def moved(x, seed):
    up = np.random.default_rng(seed).random(x.shape) < 0.5
    return np.nextafter(x, np.where(up, np.inf, -np.inf).astype(x.dtype))


def expectation(kernel, x, reference=None, argument=OUT, precision="same", reduced=None, tolerance=None):
    original = kernel(x)
    shaken = [kernel(moved(x, s)) for s in range(3)]
    return expect(
        argument,
        original,
        np.ones(original.size, dtype=bool),
        reference,
        shaken,
        precision,
        reduced or x.size / original.size,
        tolerance,
    )


def verdict(expected, got):
    return compare(expected, got, np.zeros(got.size, got.dtype))


@pytest.mark.parametrize("lifted", [True, False])
@pytest.mark.parametrize("scale", [1.0, 200.0, 1e-3])
def test_a_row_sum_in_another_order_is_accepted(scale, lifted):
    x = rows(1, (40, 1000), scale)
    expected = expectation(sequential, x, x.astype(np.float64).sum(axis=1) if lifted else None)
    assert verdict(expected, blocked(x))[1] is None


def test_a_tree_may_become_sequential_accumulation():
    x = rows(2, (1, 1 << 17))
    expected = expectation(lambda v: v.sum(axis=1), x, x.astype(np.float64).sum(axis=1))
    assert verdict(expected, sequential(x))[1] is None


@pytest.mark.parametrize("lifted", [True, False])
def test_inputs_rounded_to_half_are_refused(lifted):
    x = rows(3, (40, 1000))
    expected = expectation(sequential, x, x.astype(np.float64).sum(axis=1) if lifted else None)
    assert verdict(expected, sequential(x.astype(np.float16).astype(np.float32)))[1] is not None


def test_half_inputs_are_allowed_under_half_precision():
    x = rows(3, (40, 1000))
    expected = expectation(sequential, x, x.astype(np.float64).sum(axis=1), precision="half")
    assert verdict(expected, sequential(x.astype(np.float16).astype(np.float32)))[1] is None


def test_one_dropped_element_is_refused():
    x = rows(4, (40, 1000))
    expected = expectation(sequential, x, x.astype(np.float64).sum(axis=1))
    assert verdict(expected, sequential(x[:, :-1]))[1] is not None


def test_zeros_do_not_pass_for_tiny_results():
    x = rows(5, 500)
    tiny = lambda v: (np.exp(-np.abs(v) - 14)).astype(np.float32)  # noqa: E731
    exact = np.exp(-np.abs(x.astype(np.float64)) - 14)
    expected = expectation(tiny, x, exact)
    assert verdict(expected, np.zeros_like(x))[1] is not None


def test_a_small_element_may_not_hide_behind_large_ones():
    x = np.concatenate([rows(6, 40, 1e6), rows(7, 3, 1e-3)])
    expected = expectation(lambda v: v * np.float32(1.1), x, x.astype(np.float64) * 1.1)
    got = x * np.float32(1.1)
    got[-1] = 0.0
    assert verdict(expected, got)[1].index == x.size - 1


def test_a_scale_of_one_per_mille_is_refused():
    x = rows(8, (40, 1000))
    expected = expectation(sequential, x, x.astype(np.float64).sum(axis=1))
    assert verdict(expected, sequential(x) * np.float32(1.001))[1] is not None


def test_nan_where_the_original_is_finite_is_refused():
    x = rows(9, 100)
    got = x.copy()
    got[7] = np.nan
    assert verdict(expectation(np.copy, x), got)[1].index == 7


def test_an_infinity_of_the_other_sign_is_refused():
    x = rows(9, 100)
    x[3] = np.inf
    assert verdict(expectation(np.copy, x), np.where(np.isinf(x), -x, x))[1].index == 3


def test_bitwise_refuses_a_last_place():
    x = rows(10, 100)
    got = x.copy()
    got[0] = np.nextafter(got[0], np.float32(np.inf))
    assert verdict(expectation(np.copy, x, precision="bitwise"), got)[1].index == 0


def test_integers_must_be_equal():
    values = np.arange(10, dtype=np.int32)
    expected = expect(OUT, values, np.ones(10, dtype=bool), None, [], "same", 1.0)
    got = values.copy()
    got[4] += 1
    assert verdict(expected, got)[1].got == "5"


def test_only_the_sum_of_a_folded_output_counts():
    x = rows(11, (16, 4096))
    argument = Argument("out", "out", "f32", "P", fold="sum")
    expected = expectation(sequential, x, x.astype(np.float64).sum(axis=1), argument, reduced=x.size)
    other = np.zeros(16, np.float32)
    other[0] = blocked(x.reshape(1, -1))[0]
    assert verdict(expected, other)[1] is None


def test_a_wrong_fold_is_refused():
    x = rows(11, (16, 4096))
    argument = Argument("out", "out", "f32", "P", fold="sum")
    expected = expectation(sequential, x, x.astype(np.float64).sum(axis=1), argument, reduced=x.size)
    assert verdict(expected, sequential(x[:, 1:]))[1].index == -1


def test_an_element_that_the_original_does_not_write_may_not_be_written():
    before = np.full(10, np.nan, np.float32)
    original = before.copy()
    original[:5] = 1.0
    expected = expect(OUT, original, ~np.isnan(original), None, [], "same", 1.0)
    got = original.copy()
    got[8] = 0.0
    assert compare(expected, got, before)[1].expected == "not written"


def test_an_element_left_unwritten_is_refused():
    before = np.full(10, np.nan, np.float32)
    expected = expect(OUT, np.ones(10, np.float32), np.ones(10, dtype=bool), None, [], "same", 1.0)
    got = np.ones(10, np.float32)
    got[9] = before[9]
    assert compare(expected, got, before)[1].index == 9


def test_what_was_written_shows_over_two_poisons():
    first = (np.full(4, 7, np.int32), np.array([1, 7, 3, 8], np.int32))
    second = (np.full(4, 9, np.int32), np.array([1, 9, 3, 10], np.int32))
    written, depends = written_by(first, second)
    assert (written.tolist(), depends.tolist()) == ([True, False, True, True], [False, False, False, True])


def test_a_tolerance_of_the_user_widens_the_bound():
    x = rows(12, 100)
    expected = expectation(np.copy, x, tolerance=1e-3)
    assert verdict(expected, x * np.float32(1.0005))[1] is None


def test_a_reference_that_is_far_off_is_not_believed():
    x = rows(13, (40, 100))
    expected = expectation(sequential, x, x.astype(np.float64).sum(axis=1) + 1.0)
    assert verdict(expected, blocked(x))[1] is None


def test_where_the_original_gives_no_number_another_result_may_be_let_pass():
    x = rows(14, 100)
    x[3] = np.nan
    got = np.where(np.isnan(x), np.float32(-np.inf), x)
    expected = expectation(np.copy, x)
    assert verdict(expected, got)[1].index == 3
    assert compare(expected, got, np.zeros_like(got), finite_only=True)[1] is None


def test_where_the_original_gives_a_number_an_infinity_never_passes():
    x = rows(14, 100)
    x[3] = np.nan
    got = x.copy()
    got[5] = np.inf
    assert compare(expectation(np.copy, x), got, np.zeros_like(got), finite_only=True)[1].index == 5
