"""Row statistics in one pass compute what two did, and other pairs of loops are left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from steps import Lifted, agree, lifted

from mb_targets.form.dependence import Declined
from mb_targets.form.nest import Form, Loop
from mb_targets.form.online import one_pass
from mb_targets.form.tile import names

HEAD = """// mb: global=(rows,) rows=8 cols=40 a=f32[rows*cols] o=out f32[rows*cols]
__kernel void k(__global const float *a, __global float *o, const int rows, const int cols)
{
    int r = get_global_id(0);
    if (r >= rows)
        return;
"""
SOFTMAX = (
    HEAD
    + """
    float top = -INFINITY, s = 0.0f;
    for (int i = 0; i < cols; i++)
        top = fmax(top, a[r * cols + i]);
    for (int i = 0; i < cols; i++)
        s += exp(a[r * cols + i] - top);
    for (int i = 0; i < cols; i++)
        o[r * cols + i] = exp(a[r * cols + i] - top) / s;
}
"""
)
VARIANCE = (
    HEAD
    + """
    float mean = 0.0f;
    for (int i = 0; i < cols; i++)
        mean += a[r * cols + i];
    mean /= cols;
    float v = 0.0f;
    for (int i = 0; i < cols; i++) {
        float d = a[r * cols + i] - mean;
        v += d * d;
    }
    o[r * cols] = v / cols;
}
"""
)
NAMED = VARIANCE.replace("mean /= cols;", "float m = mean / cols;").replace("] - mean;", "] - m;")
SECOND = "    for (int i = 0; i < cols; i++)\n        s"
SHORTER = SOFTMAX.replace(SECOND, SECOND.replace("i = 0", "i = 1"))
OTHER = SOFTMAX.replace("s += exp(a[r * cols + i] - top)", "s += exp(a[r * cols] - top)")
DOUBLED = SOFTMAX.replace(SECOND, "    top *= 2.0f;\n" + SECOND)
CUBES = VARIANCE.replace("v += d * d;", "v += d * d * d;")
ONE_LOOP = (
    HEAD
    + """
    float s = 0.0f;
    for (int i = 0; i < cols; i++)
        s += a[r * cols + i];
    o[r * cols] = s;
}
"""
)
SIZES = [{"rows": r, "cols": c} for r, c in ((1, 1), (3, 2), (2, 17), (5, 33))]


def fused(one: Lifted) -> Form:
    return replace(one.form, body=one_pass(one.form.body, names(one.form)))


@pytest.mark.parametrize("source", [SOFTMAX, VARIANCE, NAMED], ids=["softmax", "variance", "own mean"])
def test_one_pass_computes_what_two_did(source: str) -> None:
    one = lifted(source)
    agree(one, fused(one), SIZES, rtol=1e-5)


def test_one_loop_is_gone() -> None:
    one = lifted(SOFTMAX)
    count = [sum(isinstance(s, Loop) for s in form.body) for form in (one.form, fused(one))]
    assert count == [3, 2]


@pytest.mark.parametrize(
    "source",
    [SHORTER, OTHER, DOUBLED, CUBES, ONE_LOOP],
    ids=["another range", "another element", "changed between", "cubes", "one loop"],
)
def test_other_loops_are_left_alone(source: str) -> None:
    with pytest.raises(Declined, match="no two passes"):
        fused(lifted(source))
