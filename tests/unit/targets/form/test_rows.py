"""Lanes and accumulators of loops, at lengths that no vector divides."""

from __future__ import annotations

from dataclasses import replace

import pytest
from steps import Lifted, agree, lifted

from mb_targets.form.dependence import Declined
from mb_targets.form.nest import Form, Let, Loop
from mb_targets.form.rows import innermost, unroll, vectorize_loops
from mb_targets.form.schedule import dtypes
from mb_targets.form.tile import names
from mb_targets.form.traverse import statements

HEAD = """// mb: global=(rows,) rows=8 cols=40 a=f32[rows*cols] o=out f32[rows*cols]
__kernel void k(__global const float *a, __global float *o, const int rows, const int cols)
{
    int r = get_global_id(0);
    if (r >= rows)
        return;
"""
SUM = (
    HEAD
    + """
    float s = 0.0f;
    for (int i = 0; i < cols; i++)
        s += a[r * cols + i];
    o[r * cols] = s;
}
"""
)
BOTH = (
    HEAD
    + """
    float top = -INFINITY, s = 0.0f;
    for (int i = 0; i < cols; i++)
        top = fmax(top, a[r * cols + i]);
    for (int i = 0; i < cols; i++)
        s += a[r * cols + i] - top;
    for (int i = 0; i < cols; i++)
        o[r * cols + i] = a[r * cols + i] * s + top;
}
"""
)
RUNNING = (
    HEAD
    + """
    float s = 0.0f;
    for (int i = 0; i < cols; i++) {
        s += a[r * cols + i];
        o[r * cols + i] = s;
    }
}
"""
)
STRIDED = SUM.replace("i++", "i += 2")
SHORT = SUM.replace("i < cols", "i < 3").replace("cols=40", "cols=40:3..64")
CARRIED = SUM.replace("s += a[r * cols + i];", "s = s * 0.5f + a[r * cols + i];")
SHIFTED = (
    HEAD.replace("__global const float *a", "__global float *a").replace("a=f32", "a=inout f32")
    + """
    for (int i = 0; i < cols - 1; i++)
        a[r * cols + i] = a[r * cols + i + 1];
    o[r * cols] = 1.0f;
}
"""
)
PLAIN = (
    HEAD
    + """
    o[r * cols] = a[r * cols];
}
"""
)
SIZES = [{"rows": r, "cols": c} for r, c in ((1, 1), (3, 3), (2, 4), (2, 17), (5, 33), (3, 64))]


def vectorized(one: Lifted, lanes: int, copies: int) -> Form:
    form = one.form
    return replace(form, body=vectorize_loops(form.body, lanes, copies, names(form), dtypes(form)))


@pytest.mark.parametrize("source", [SUM, BOTH], ids=["a sum", "three loops"])
@pytest.mark.parametrize(("lanes", "copies"), [(2, 1), (4, 1), (4, 4), (8, 2), (16, 1)])
def test_vectorized_loops_compute_the_same(source: str, lanes: int, copies: int) -> None:
    one = lifted(source)
    agree(one, vectorized(one, lanes, copies), SIZES, rtol=1e-5)


def test_each_accumulator_is_a_vector_of_its_own() -> None:
    form = vectorized(lifted(SUM), 4, 4)
    assert sum(isinstance(s, Let) and s.lanes == 4 for s in form.body) == 4


def test_loops_over_one_range_share_where_their_vectors_end() -> None:
    form = vectorized(lifted(BOTH), 4, 1)
    assert sum(isinstance(s, Let) and s.name.endswith("_end") for s in form.body) == 1


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (STRIDED, "does not step by 1"),
        (SHORT, "runs only 3 times"),
        (CARRIED, "carries s"),
        (RUNNING, "uses s before the fold is done"),
        (SHIFTED, "reads a at other places"),
        (PLAIN, "there is no loop"),
    ],
)
def test_a_loop_that_cannot_take_lanes_says_why(source: str, reason: str) -> None:
    with pytest.raises(Declined, match=reason):
        vectorized(lifted(source), 4, 1)


def test_one_loop_that_cannot_does_not_keep_the_others_from_it() -> None:
    tail = "    for (int i = 0; i < cols; i++)\n        o[r * cols + i] *= 2.0f;\n}\n"
    one = lifted(RUNNING.rstrip()[:-1] + tail)
    agree(one, vectorized(one, 4, 1), SIZES)


def test_only_innermost_loops_are_unrolled() -> None:
    form = lifted(BOTH).form
    unrolled = [s for s in statements(unroll(form.body, 4)) if isinstance(s, Loop)]
    assert [s.unroll for s in unrolled] == [4, 4, 4]
    assert len(innermost(form.body)) == 3


def test_nothing_to_unroll_is_declined() -> None:
    with pytest.raises(Declined, match="no loop"):
        unroll(lifted(PLAIN).form.body, 4)
