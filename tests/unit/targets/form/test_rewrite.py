"""Rewrites of expressions compute the same, and say when there is nothing to rewrite."""

from __future__ import annotations

from dataclasses import replace

import pytest
from steps import Lifted, agree, lifted

from mb_targets.form import rewrite
from mb_targets.form.dependence import Declined
from mb_targets.form.nest import Call, Form, Load, Loop, Op, Stmt
from mb_targets.form.schedule import REWRITES
from mb_targets.form.tile import names
from mb_targets.form.traverse import expressions, loads, statements, walk

MAP = """// mb: global=(n,) n=64 x=f32[n] y=out f32[n]
__kernel void k(__global const float *x, __global float *y, const int n)
{
    int i = get_global_id(0);
    if (i < n)
        y[i] = VALUE;
}
"""
ROWS = """// mb: global=(rows,) rows=8 cols=40 a=f32[rows*cols] o=out f32[rows*cols] by=1.7
__kernel void k(__global const float *a, __global float *o, const int rows, const int cols, const float by)
{
    int r = get_global_id(0);
    if (r >= rows)
        return;
    float s = 0.0f;
    for (int i = 0; i < cols; i++)
        s += FIRST;
    for (int i = 0; i < cols; i++)
        o[r * cols + i] = SECOND;
}
"""
ODD = [{"n": n} for n in (1, 3, 37)]
FLAT = [{"rows": r, "cols": c} for r, c in ((1, 1), (3, 2), (2, 17))]
ELEMENT = "a[r * cols + i]"


def mapped(value: str) -> Lifted:
    return lifted(MAP.replace("VALUE", value))


def rows(first: str, second: str = f"{ELEMENT} * s") -> Lifted:
    return lifted(ROWS.replace("FIRST", first).replace("SECOND", second))


def rewritten(one: Lifted, name: str) -> Form:
    return replace(one.form, body=REWRITES[name](one.form.body, names(one.form)))


def calls(body: tuple[Stmt, ...]) -> list[str]:
    found = (e for s in statements(body) for t in expressions(s) for e in walk(t))
    return sorted(e.function for e in found if isinstance(e, Call))


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ("pow(x[i], 2.0f)", []),
        ("pow(x[i], 3.0f)", []),
        ("pown(x[i], 4)", []),
        ("pow(x[i] * x[i], 0.5f)", ["sqrt"]),
    ],
)
def test_small_powers_become_products(value: str, left: list[str]) -> None:
    one = mapped(value)
    after = rewritten(one, "powers")
    assert calls(after.body) == left
    agree(one, after, ODD, rtol=1e-5)


@pytest.mark.parametrize("value", ["tanh(x[i])", "1.0f + tanh(x[i])", "tanh(x[i]) + 1.0f"])
def test_tanh_becomes_exp(value: str) -> None:
    one = mapped(value)
    after = rewritten(one, "tanh")
    assert calls(after.body) == ["exp"]
    agree(one, after, ODD, rtol=1e-5)


def test_double_literals_become_float() -> None:
    one = mapped("x[i] * 0.1 + 2.0")
    after = rewritten(one, "single")
    assert {e.dtype for s in statements(after.body) for t in expressions(s) for e in walk(t)} <= {
        "f32",
        "i32",
    }
    agree(one, after, ODD, rtol=1e-5)


def test_native_functions_take_the_place_of_float_ones() -> None:
    assert calls(rewritten(mapped("exp(x[i])"), "native").body) == ["native_exp"]


def test_a_division_by_an_invariant_is_done_once() -> None:
    one = rows(f"{ELEMENT} / by", f"{ELEMENT} / s")
    after = rewritten(one, "reciprocal")
    loops = [s for s in after.body if isinstance(s, Loop)]
    inside = (e for s in loops for x in s.body for t in expressions(x) for e in walk(t))
    assert not any(isinstance(e, Op) and e.op == "/" for e in inside)
    agree(one, after, FLAT, rtol=1e-5)


def test_a_costly_invariant_is_computed_once() -> None:
    one = rows(f"{ELEMENT} * exp(by)")
    after = rewritten(one, "hoist")
    loops = tuple(s for s in after.body if isinstance(s, Loop))
    assert (calls(loops), calls(after.body)) == ([], ["exp"])
    agree(one, after, FLAT)


def test_a_value_that_one_loop_computed_is_kept_for_the_next() -> None:
    value = f"exp({ELEMENT} - by)"
    one = rows(value, f"{value} / s")
    after = rewritten(one, "reuse")
    assert calls(after.body) == ["exp"]
    assert "o" in {load.buffer for load in loads(after.body)}
    agree(one, after, FLAT)


def test_a_value_that_changed_meanwhile_is_not_kept() -> None:
    value = f"exp({ELEMENT} - s)"
    with pytest.raises(Declined, match="no later loop"):
        rewritten(rows(value.replace("s)", "by)"), f"{value} / s"), "reuse")


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("powers", "pow(x[i], 2.5f)", "no pow with a small constant exponent"),
        ("tanh", "exp(x[i])", "no tanh"),
        ("native", "fabs(x[i])", "no function with a native version"),
        ("single", "x[i] * 2.0f", "no double literal"),
        ("reciprocal", "x[i] / 3.0f", "no division by a loop invariant"),
        ("hoist", "exp(x[i])", "no costly loop invariant"),
        ("reuse", "exp(x[i])", "no later loop"),
    ],
)
def test_nothing_to_rewrite_is_declined(name: str, value: str, reason: str) -> None:
    with pytest.raises(Declined, match=reason):
        rewritten(mapped(value), name)


def test_doubles_of_the_users_own_stay() -> None:
    doubles = MAP.replace("float", "double").replace("f32", "f64").replace("VALUE", "x[i] * 2.0")
    with pytest.raises(Declined, match="works on doubles"):
        rewritten(lifted(doubles), "single")


def test_variables_set_once_are_substituted_and_others_kept() -> None:
    squares = "{ float d = a[r * cols + i]; s += d * d; }"
    form = lifted(ROWS.replace("s += FIRST;", squares).replace("SECOND", "s")).form
    loop = next(s for s in form.body if isinstance(s, Loop))
    (fold,) = rewrite.flatten_lets(loop.body)
    assert sum(isinstance(e, Load) for t in expressions(fold) for e in walk(t)) == 2
