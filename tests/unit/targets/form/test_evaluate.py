"""Evaluation of hand-made forms: what lifted kernels do not reach."""

from __future__ import annotations

import numpy as np
import pytest

from mb_targets.errors import RunError
from mb_targets.form.evaluate import evaluate
from mb_targets.form.nest import (
    Accumulate,
    Array,
    Assign,
    Axis,
    Barrier,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    Fold,
    Form,
    If,
    Lane,
    Let,
    Load,
    Loop,
    Op,
    Pack,
    Select,
    Stmt,
    Store,
    Tree,
    Var,
)
from mb_targets.model import Dtype

ZERO, ONE = Const(0, "i32"), Const(1, "i32")
ID, N = Var("i", "i32"), Var("n", "i32")


def op(operator: str, a: Expr, b: Expr, dtype: Dtype = "i32", lanes: int = 1) -> Op:
    return Op(operator, (a, b), dtype, lanes)  # type: ignore[arg-type]


def form(*body: Stmt, axes: tuple[Axis, ...] | None = None, dtype: Dtype = "f32") -> Form:
    axes = (Axis("i", "i32", 0, "item", N, True),) if axes is None else axes
    buffers = (Buffer("a", dtype, "global", True, False), Buffer("o", dtype, "global", True, True))
    return Form("k", buffers, (N,), axes, body)


def run(f: Form, a: list[float], size: int, local: tuple[int, ...] | None = None) -> list[float]:
    values = np.array(a, np.float32 if f.buffers[0].dtype == "f32" else np.int32)
    return evaluate(f, {"n": size}, {"a": values, "o": np.zeros_like(values)}, (size,), local)["o"].tolist()


def test_vector_loads_and_stores_take_contiguous_elements() -> None:
    axis = Axis("i", "i32", 0, "item", N, True, block=4)
    double = op("*", Load("a", ID, "f32", 4), Const(2.0, "f32"), "f32", 4)
    assert run(form(Store("o", ID, double), axes=(axis,)), [1, 2, 3, 4, 5, 6, 7, 8], 8) == [
        2, 4, 6, 8, 10, 12, 14, 16,
    ]  # fmt: skip


def test_packs_lanes_and_folds_of_vectors() -> None:
    whole = Load("a", ZERO, "f32", 4)
    body = (
        Let("v", "f32", whole, 4),
        Accumulate("v", "+", Const(1.0, "f32")),
        Store("o", ZERO, Fold("max", Var("v", "f32", 4), "f32")),
        Store("o", ONE, Lane(Var("v", "f32", 4), 2, "f32")),
        Store("o", Const(2, "i32"), Pack((Const(7.0, "f32"), Load("a", ONE, "f32")), "f32")),
    )
    assert run(form(*body, axes=()), [4, 9, 3, 1], 4) == [10, 4, 7, 9]


def test_a_cast_with_more_lanes_broadcasts() -> None:
    axis = Axis("i", "i32", 0, "item", N, True, block=2)
    body = (Let("x", "f32", Load("a", ID, "f32")), Store("o", ID, Cast(Var("x", "f32"), "f32", 2)))
    assert run(form(*body, axes=(axis,)), [1, 2, 3, 4], 4) == [1, 1, 3, 3]


def test_a_vector_condition_selects_by_lane() -> None:
    whole = Load("a", ZERO, "f32", 4)
    positive = Op(">", (whole, Const(0.0, "f32")), "i32", 4)
    chosen = Select(positive, whole, Const(0.0, "f32"), "f32", 4)
    assert run(form(Store("o", ZERO, chosen), axes=()), [-1, 2, -3, 4], 4) == [0, 2, 0, 4]


def test_a_private_array_is_each_items_own() -> None:
    body = (
        Array("t", "f32", 2, "private"),
        Store("t", ZERO, Load("a", ID, "f32")),
        Store("t", ONE, op("*", Load("t", ZERO, "f32"), Const(10.0, "f32"), "f32")),
        Store("o", ID, Load("t", ONE, "f32")),
    )
    assert run(form(*body), [1, 2, 3], 3) == [10, 20, 30]


def test_items_of_a_tile_share_a_local_array() -> None:
    axis = Axis("first", "i32", 0, "tile", N, block=4)
    own = Call("get_local_id", (ZERO,), "i32")
    first, item = Var("first", "i32"), Var("l", "i32")
    body = (
        Array("t", "f32", 4, "local"),
        Let("l", "i32", own),
        Store("t", item, Load("a", op("+", first, item), "f32")),
        Barrier(),
        Store("o", op("+", first, item), Load("t", op("-", Const(3, "i32"), item), "f32")),
    )
    assert run(form(*body, axes=(axis,)), [1, 2, 3, 4, 5, 6, 7, 8], 8, (4,)) == [4, 3, 2, 1, 8, 7, 6, 5]


def test_a_tree_folds_a_local_array_into_its_first_element() -> None:
    axis = Axis("first", "i32", 0, "tile", N, block=4)
    first, item = Var("first", "i32"), Var("l", "i32")
    body = (
        Array("t", "f32", 4, "local"),
        Let("l", "i32", Call("get_local_id", (ZERO,), "i32")),
        Store("t", item, Load("a", op("+", first, item), "f32")),
        Barrier(),
        Tree("t", "l", "+", 4, "f32"),
        Store("o", op("+", first, item), Load("t", ZERO, "f32")),
    )
    assert run(form(*body, axes=(axis,)), [1, 2, 3, 4, 5, 6, 7, 8], 8, (4,)) == [10] * 4 + [26] * 4


def test_loops_may_run_differently_often_for_each_item() -> None:
    body = (
        Let("s", "f32", Const(0.0, "f32")),
        Loop("j", "i32", ZERO, ID, ONE, (Accumulate("s", "+", Load("a", Var("j", "i32"), "f32")),)),
        Store("o", ID, Var("s", "f32")),
    )
    assert run(form(*body), [1, 2, 3, 4], 4) == [0, 1, 3, 6]


def test_a_loop_that_carries_a_value_runs_in_order() -> None:
    carried = op("+", op("*", Var("s", "f32"), Const(2.0, "f32"), "f32"), Const(1.0, "f32"), "f32")
    body = (
        Let("s", "f32", Load("a", ID, "f32")),
        Loop("j", "i32", ZERO, Const(3, "i32"), ONE, (Assign("s", carried),)),
        Store("o", ID, Var("s", "f32")),
    )
    assert run(form(*body), [0, 1], 2) == [7, 15]


def test_a_copy_of_a_variable_does_not_change_with_it() -> None:
    body = (
        Let("s", "f32", Load("a", ID, "f32")),
        Let("t", "f32", Var("s", "f32")),
        Accumulate("s", "+", Const(1.0, "f32")),
        Store("o", ID, op("-", Var("s", "f32"), Var("t", "f32"), "f32")),
    )
    assert run(form(*body), [5, 6], 2) == [1, 1]


def test_reads_behind_a_false_condition_are_not_made() -> None:
    inside = op("<", op("+", ID, ONE), N)
    following = Load("a", op("+", ID, ONE), "f32")
    body = (
        Let("s", "f32", Select(inside, following, Const(-1.0, "f32"), "f32")),
        If(
            op("&&", inside, Op(">", (following, Const(0.0, "f32")), "i32")),
            (Accumulate("s", "*", following),),
        ),
        Store("o", ID, Var("s", "f32")),
    )
    assert run(form(*body), [1, 2, 3], 3) == [4, 9, -1]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (Store("o", ID, Load("a", op("+", ID, ONE), "f32")), r"reads a\[3\]"),
        (Store("o", op("-", ID, ONE), Const(0.0, "f32")), r"writes o\[-1\]"),
    ],
)
def test_an_index_outside_a_buffer_names_the_buffer(body: Stmt, words: str) -> None:
    with pytest.raises(RunError, match=words):
        run(form(body), [1, 2, 3], 3)


def test_whole_numbers_wrap_and_divide_as_c_does() -> None:
    body = (
        Store("o", ZERO, op("+", Load("a", ZERO, "i32"), ONE)),
        Store("o", ONE, op("/", Load("a", ONE, "i32"), Const(2, "i32"))),
        Store("o", Const(2, "i32"), op("%", Load("a", ONE, "i32"), Const(4, "i32"))),
        Store("o", Const(3, "i32"), Op("<", (Load("a", ONE, "i32"), Const(1, "u32")), "i32")),
    )
    assert run(form(*body, axes=(), dtype="i32"), [2**31 - 1, -7, 0, 0], 4) == [-(2**31), -3, -3, 0]


def test_an_empty_launch_changes_nothing() -> None:
    assert run(form(Store("o", ID, Load("a", ID, "f32"))), [], 0) == []


def test_a_sum_of_products_of_local_elements_reads_the_items_own_group() -> None:
    axis = Axis("first", "i32", 0, "tile", N, block=2)
    first, item, j = Var("first", "i32"), Var("l", "i32"), Var("j", "i32")
    cell = Load("t", j, "f32")
    product = op("*", cell, cell, "f32")
    body = (
        Array("t", "f32", 2, "local"),
        Let("l", "i32", Call("get_local_id", (ZERO,), "i32")),
        Store("t", item, Load("a", op("+", first, item), "f32")),
        Barrier(),
        Let("s", "f32", Const(0.0, "f32")),
        Loop("j", "i32", ZERO, Const(2, "i32"), ONE, (Accumulate("s", "+", product),)),
        Store("o", op("+", first, item), Var("s", "f32")),
    )
    assert run(form(*body, axes=(axis,)), [1, 2, 3, 4], 4, (2,)) == [5, 5, 25, 25]
