"""Local tiles of contractions and transpositions, at sizes that no tile divides."""

from __future__ import annotations

import pytest
from steps import agree, lifted

from mb_targets.form.dependence import Declined
from mb_targets.form.nest import Array, Barrier, If, Select
from mb_targets.form.stage import stage_contraction, stage_transposition
from mb_targets.form.traverse import expressions, statements, walk

MATMUL = """// mb: global=(m, n) n=12 m=10 k=9 a=f32[n*k] b=f32[k*m] c=out f32[n*m]
__kernel void matmul(__global const float *a, __global const float *b, __global float *c, int n, int m, int k)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= n || col >= m)
        return;
    float s = 0.0f;
    for (int p = 0; p < k; p++)
        s += a[row * k + p] * b[p * m + col];
    c[row * m + col] = s;
}
"""
TRANSPOSED = MATMUL.replace("b[p * m + col]", "b[col * k + p]")
ADDED = MATMUL.replace("float s = 0.0f;", "float s = a[row * k];").replace("] = s;", "] = fmax(s, 0.0f);")
EVEN = (
    MATMUL.replace("row >= n || col >= m", "row >= 8 || col >= 16").replace("p < k", "p < 4")
    .replace("* k + p", "* 4 + p").replace("* m + col", "* 16 + col")
    .replace("n=12 m=10 k=9", "n=8:8..8 m=16:16..16 k=4:4..4")
)  # fmt: skip
LARGEST = MATMUL.replace(
    "s += a[row * k + p] * b[p * m + col];", "s = fmax(s, a[row * k + p] * b[p * m + col]);"
)
DISTANCE = MATMUL.replace("a[row * k + p] * b[p * m + col]", "a[row * k + p] - b[p * m + col]")
STRIDED = MATMUL.replace("p < k; p++", "p < k; p += 2")
WEIGHTED = MATMUL.replace("a[row * k + p] *", "a[row] *")
SUM_OF_ROW = """// mb: global=(n,) n=12 k=9 a=f32[n*k] c=out f32[n]
__kernel void rows(__global const float *a, __global float *c, int n, int k)
{
    int row = get_global_id(0);
    if (row >= n)
        return;
    float s = 0.0f;
    for (int p = 0; p < k; p++)
        s += a[row * k + p] * a[row * k + p];
    c[row] = s;
}
"""
TRANSPOSE = """// mb: global=(w, h) w=12 h=10 a=f32[w*h] o=out f32[w*h]
__kernel void transpose(__global const float *a, __global float *o, int w, int h)
{
    int x = get_global_id(0);
    int y = get_global_id(1);
    if (x < w && y < h)
        o[x * h + y] = a[y * w + x];
}
"""
COPY = TRANSPOSE.replace("o[x * h + y]", "o[y * w + x]")
SCALED = TRANSPOSE.replace("= a[y", "= 2.0f * a[y")
CONTRACTIONS = {"plain": MATMUL, "b transposed": TRANSPOSED, "with an epilogue": ADDED}
SIZES = [{"n": n, "m": m, "k": k} for n, m, k in ((1, 1, 1), (3, 5, 2), (8, 4, 4), (9, 17, 5), (12, 10, 9))]
FLAT = [{"w": w, "h": h} for w, h in ((1, 1), (3, 5), (8, 8), (17, 9), (1, 9))]


@pytest.mark.parametrize("source", CONTRACTIONS.values(), ids=CONTRACTIONS)
@pytest.mark.parametrize(("size", "jam", "depth"), [(4, 1, 4), (4, 2, 4), (2, 3, 8), (4, 1, 3)])
def test_a_staged_contraction_computes_the_same(source: str, size: int, jam: int, depth: int) -> None:
    one = lifted(source)
    agree(one, stage_contraction(one.form, size, jam, depth), SIZES, (size, size), rtol=1e-5)


def test_rows_of_a_tile_are_one_element_longer_than_what_they_hold() -> None:
    form = stage_contraction(lifted(MATMUL).form, 4, 2, 4)
    tiles = {s.name: s.length for s in form.body if isinstance(s, Array)}
    assert tiles == {"a_tile": 8 * (4 + 1), "b_tile": 4 * (8 + 1)}


def test_sizes_that_tiles_fill_need_no_guards() -> None:
    one = lifted(EVEN)
    form = stage_contraction(one.form, 4, 2, 4)
    assert not any(isinstance(s, If) for s in statements(form.body))
    assert not any(
        isinstance(e, Select) for s in statements(form.body) for t in expressions(s) for e in walk(t)
    )
    agree(one, form, [{"n": 8, "m": 16, "k": 4}], (4, 4), rtol=1e-5)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (LARGEST, "no single sum"),
        (STRIDED, "no single sum"),
        (DISTANCE, "no sum of products"),
        (WEIGHTED, "a is not walked by the loop and one axis"),
        (SUM_OF_ROW, "two axes of items"),
        (TRANSPOSE, "no single sum"),
    ],
)
def test_what_is_no_contraction_says_why(source: str, reason: str) -> None:
    with pytest.raises(Declined, match=reason):
        stage_contraction(lifted(source).form, 4, 2, 4)


@pytest.mark.parametrize(("size", "rows"), [(4, 4), (4, 2), (8, 2), (8, 1)])
def test_a_staged_transposition_computes_the_same(size: int, rows: int) -> None:
    one = lifted(TRANSPOSE)
    agree(one, stage_transposition(one.form, size, rows), FLAT, (size, rows))


def test_a_tile_is_read_only_when_it_is_whole() -> None:
    body = stage_transposition(lifted(TRANSPOSE).form, 4, 2).body
    assert sum(isinstance(s, Barrier) for s in body) == 1


@pytest.mark.parametrize(
    ("source", "reason"),
    [(COPY, "along the same axis"), (SCALED, "more than move"), (MATMUL, "more than move")],
)
def test_what_is_no_transposition_says_why(source: str, reason: str) -> None:
    with pytest.raises(Declined, match=reason):
        stage_transposition(lifted(source).form, 4, 2)
