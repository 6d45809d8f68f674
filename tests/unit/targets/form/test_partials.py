"""Partial sums regrouped among few items, at sizes that nothing divides."""

from __future__ import annotations

import pytest
from steps import Lifted, agree, lifted

from mb_targets.form.dependence import Declined
from mb_targets.form.nest import Form
from mb_targets.form.partials import regroup

TREE = """// mb: global=((n+7)//8*8,) local=(8,) n=100 x=f32[n] o=out:sum f32[(n+7)//8]
__kernel void sums(__global const float *x, __global float *o, const int n)
{
    __local float t[8];
    int g = get_global_id(0), l = get_local_id(0);
    t[l] = g < n ? x[g] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = 4; s > 0; s /= 2) {
        if (l < s)
            t[l] += t[l + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0)
        o[get_group_id(0)] = t[0];
}
"""
SQUARES = TREE.replace("x[g] : 0.0f", "x[g] * x[g] : 0.0f")
ROWS = """// mb: global=(n,) n=20 x=f32[n*8] o=out:sum f32[n]
__kernel void rows(__global const float *x, __global float *o, const int n)
{
    int r = get_global_id(0);
    if (r >= n)
        return;
    float s = 0.0f;
    for (int i = 0; i < 8; i++)
        s += x[r * 8 + i];
    o[r] = s;
}
"""
EVERY = TREE.replace("out:sum", "out")
LARGEST = TREE.replace("t[l] += t[l + s];", "t[l] = fmax(t[l], t[l + s]);")
OVERLAPPING = ROWS.replace("x[r * 8 + i]", "x[r * 8 + 2 * i]").replace("x=f32[n*8]", "x=f32[n*8+16]")
REVERSED = ROWS.replace("o[r] = s", "o[n - 1 - r] = s")
CONSTANT = ROWS.replace("s += x[r * 8 + i]", "s += 1.0f").replace("o[r] = s", "o[r] = s")
MAPPED = ROWS.replace("    float s = 0.0f;\n", "").replace(
    "    for (int i = 0; i < 8; i++)\n        s += x[r * 8 + i];\n    o[r] = s;", "    o[r] = x[r];"
)
SIZES = [{"n": n} for n in (1, 7, 8, 9, 37, 100)]


def regrouped(one: Lifted, items: int) -> Form:
    return regroup(one.form, items, one.folded)


@pytest.mark.parametrize("source", [TREE, SQUARES, ROWS], ids=["tree", "squares", "rows"])
@pytest.mark.parametrize("items", [1, 3, 4, 64])
def test_the_partials_sum_to_the_same(source: str, items: int) -> None:
    one = lifted(source)
    agree(one, regrouped(one, items), SIZES, rtol=1e-5)


def test_few_items_do_what_all_groups_did() -> None:
    (axis,) = regrouped(lifted(TREE), 4).axes
    assert (axis.level, axis.guarded) == ("item", True)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (EVERY, "every element of o matters"),
        (LARGEST, "no sum"),
        (OVERLAPPING, "not read at its own position"),
        (REVERSED, "not stored one a group"),
        (CONSTANT, "reads nothing"),
        (MAPPED, "more than one fold"),
    ],
)
def test_what_cannot_be_regrouped_says_why(source: str, reason: str) -> None:
    with pytest.raises(Declined, match=reason):
        regrouped(lifted(source), 4)
