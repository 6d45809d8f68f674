"""Tiles, chunks, wide ids and swapped axes, at sizes that no tile divides."""

from __future__ import annotations

import pytest
from steps import agree, lifted

from mb_targets.form.dependence import Declined
from mb_targets.form.nest import If, Loop, Var
from mb_targets.form.tile import chunk, exact, fresh, interchange, tile, widen
from mb_targets.form.traverse import statements

SCALE = """// mb: global=(n,) n=64 x=f32[n] y=out f32[n]
__kernel void scale(__global const float *x, __global float *y, const int n)
{
    int i = get_global_id(0);
    if (i < n)
        y[i] = 2.0f * x[i];
}
"""
FIXED = SCALE.replace("i < n", "i < 64").replace("global=(n,)", "global=(64,)").replace("n=64", "n=64:64..64")
OUTER = """// mb: global=(w, h) w=24 h=16 a=f32[w] b=f32[h] o=out f32[w*h]
__kernel void outer(__global const float *a, __global const float *b, __global float *o, int w, int h)
{
    int x = get_global_id(0);
    int y = get_global_id(1);
    if (x < w && y < h)
        o[y * w + x] = a[x] * b[y];
}
"""
PREFIX = """// mb: global=(n,) n=64 x=f32[n] y=out f32[n]
__kernel void upto(__global const float *x, __global float *y, const int n)
{
    int i = get_global_id(0);
    float s = 0.0f;
    for (int j = 0; j < i; j++)
        s += x[j];
    y[i] = s;
}
"""
ODD = [{"n": n} for n in (1, 3, 4, 5, 37, 64)]
FLAT = [{"w": w, "h": h} for w, h in ((1, 1), (5, 3), (1, 9), (17, 2), (24, 16))]


@pytest.mark.parametrize("size", [(3, 1), (1, 4), (2, 4), (1, 16), (5, 1)])
def test_a_tile_computes_the_same_at_sizes_it_does_not_divide(size: tuple[int, int]) -> None:
    one = lifted(SCALE)
    agree(one, tile(one.form, {"i": size}), ODD)


@pytest.mark.parametrize("sizes", [{"x": (1, 4), "y": (3, 1)}, {"x": (2, 2)}, {"y": (2, 1)}])
def test_a_tile_over_two_axes_computes_the_same(sizes: dict[str, tuple[int, int]]) -> None:
    one = lifted(OUTER)
    agree(one, tile(one.form, sizes), FLAT)


def test_a_tile_that_divides_the_axis_has_no_edge() -> None:
    form = lifted(FIXED).form
    assert not any(isinstance(s, If | Loop) for s in statements(tile(form, {"i": (4, 1)}).body))
    assert any(isinstance(s, Loop) for s in statements(tile(form, {"i": (3, 1)}).body))


def test_an_item_of_a_tiled_axis_takes_a_block() -> None:
    (axis,) = tile(lifted(SCALE).form, {"i": (2, 4)}).axes
    assert (axis.block, axis.name) == (8, "i0")


def test_a_tile_of_an_axis_that_is_not_there_is_declined() -> None:
    with pytest.raises(Declined, match="no such axis"):
        tile(lifted(SCALE).form, {"nosuch": (4, 1)})


def test_copies_of_a_loop_whose_length_differs_from_item_to_item_are_declined() -> None:
    with pytest.raises(Declined, match="loop"):
        tile(lifted(PREFIX).form, {"i": (4, 1)})


@pytest.mark.parametrize("size", [1, 2, 5, 64, 100])
def test_a_chunk_computes_the_same_at_sizes_it_does_not_divide(size: int) -> None:
    one = lifted(SCALE)
    agree(one, chunk(one.form, "i", size), ODD)


def test_a_chunk_may_hold_loops_of_different_lengths() -> None:
    one = lifted(PREFIX)
    agree(one, chunk(one.form, "i", 1), ODD)


def test_a_chunk_of_an_axis_that_is_not_there_is_declined() -> None:
    with pytest.raises(Declined, match="no axis nosuch"):
        chunk(lifted(SCALE).form, "nosuch", 4)


def test_wide_ids_compute_the_same() -> None:
    one = lifted(OUTER)
    wide = widen(one.form)
    assert {a.dtype for a in wide.axes} == {"u64"}
    agree(one, wide, FLAT)


def test_swapped_axes_know_where_their_sizes_come_from() -> None:
    one = lifted(OUTER)
    swapped = interchange(one.form)
    assert [(a.name, a.dim, a.source) for a in swapped.axes] == [("y", 0, 1), ("x", 1, 0)]
    agree(one, swapped, FLAT)


def test_one_axis_cannot_be_swapped() -> None:
    with pytest.raises(Declined, match="two axes"):
        interchange(lifted(SCALE).form)


def test_only_a_known_extent_is_filled_exactly() -> None:
    (unknown,), (known,) = lifted(SCALE).form.axes, lifted(FIXED).form.axes
    assert (exact(unknown, 4), exact(unknown, 1)) == (False, True)
    assert (exact(known, 4), exact(known, 3)) == (True, False)


def test_a_fresh_name_is_taken_at_once() -> None:
    taken = {"i"}
    assert [fresh("i", taken) for _ in range(2)] == ["i0", "i1"]
    assert Var("i0", "i32").name in taken
