"""A work group shares what one item did, at row lengths that the group does not divide."""

from __future__ import annotations

import pytest
from steps import Lifted, agree, lifted

from mb_targets.form.dependence import Declined
from mb_targets.form.group import cooperate
from mb_targets.form.nest import Array, Barrier, Form, Tree
from mb_targets.form.schedule import dtypes
from mb_targets.form.traverse import statements

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
COUNTS = (
    HEAD
    + """
    float s = 1.5f, p = 1.0f;
    for (int i = 0; i < cols; i++) {
        s += a[r * cols + i];
        p *= 1.0f + 0.01f * a[r * cols + i];
    }
    o[r * cols] = s * p;
}
"""
)
NESTED = (
    HEAD
    + """
    float s = 0.0f;
    for (int i = 0; i < cols; i++)
        for (int j = 0; j < 2; j++)
            s += a[r * cols + i];
    o[r * cols] = s;
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
BRANCHED = (
    HEAD
    + """
    if (a[r * cols] > 0.0f) {
        float s = 0.0f;
        for (int i = 0; i < cols; i++)
            s += a[r * cols + i];
        o[r * cols] = s;
    }
}
"""
)
PLAIN = HEAD + "    o[r * cols] = a[r * cols];\n}\n"
SIZES = [{"rows": r, "cols": c} for r, c in ((1, 1), (3, 3), (2, 8), (2, 17), (5, 33))]


def shared(one: Lifted, items: int) -> Form:
    return cooperate(one.form, items, dtypes(one.form))


@pytest.mark.parametrize("source", [SOFTMAX, COUNTS], ids=["softmax", "a sum and a product"])
@pytest.mark.parametrize("items", [1, 2, 8, 16])
def test_a_shared_row_computes_the_same(source: str, items: int) -> None:
    one = lifted(source)
    agree(one, shared(one, items), SIZES, local=(items,), rtol=1e-5)


def test_folds_of_one_dtype_share_their_local_memory() -> None:
    form = shared(lifted(SOFTMAX), 8)
    assert [s.length for s in statements(form.body) if isinstance(s, Array)] == [8]
    assert sum(isinstance(s, Tree) for s in statements(form.body)) == 2


def test_local_memory_is_not_written_again_before_all_have_read_it() -> None:
    form = shared(lifted(COUNTS), 8)
    body = list(form.body)
    ends = [k for k, s in enumerate(body) if isinstance(s, Tree)]
    assert len(ends) == 2
    assert any(isinstance(s, Barrier) for s in body[ends[0] + 1 : ends[1] - 1])


def test_the_axis_is_a_groups() -> None:
    assert [a.level for a in shared(lifted(SOFTMAX), 8).axes] == ["tile"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (NESTED, "no innermost loop"),
        (RUNNING, "uses s before the fold is done"),
        (BRANCHED, "branch stands around"),
        (PLAIN, "no loop to share"),
    ],
)
def test_a_row_that_cannot_be_shared_says_why(source: str, reason: str) -> None:
    with pytest.raises(Declined, match=reason):
        shared(lifted(source), 8)
