from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mb_targets.form.affine import coefficient, constant, depends, equal, polynomial, simplify, split
from mb_targets.form.dtypes import common
from mb_targets.form.nest import Cast, Const, Expr, Load, Op, Select, Var
from mb_targets.form.traverse import walk

x, y, n = (Var(name, "i32") for name in "xyn")


def op(operator: str, *args: Expr | int) -> Expr:
    operands = tuple(Const(a, "i32") if isinstance(a, int) else a for a in args)
    dtype = operands[0].dtype
    for a in operands:
        dtype = common(dtype, a.dtype)
    return Op(operator, operands, dtype)  # type: ignore[arg-type]


def value(e: Expr, names: dict[str, int]) -> int:
    match e:
        case Const(value=v):
            return int(v)
        case Var(name=name):
            return names[name]
        case Op(op="neg", args=(a,)):
            return -value(a, names)
        case Op(op=o, args=(a, b)):
            left, right = value(a, names), value(b, names)
            return {"+": left + right, "-": left - right, "*": left * right, "<": int(left < right)}[o]
        case _:
            raise AssertionError(e)


leaves = st.one_of(st.sampled_from([x, y, n]), st.integers(-5, 5).map(lambda v: Const(v, "i32")))
arithmetic = st.recursive(
    leaves, lambda e: st.tuples(st.sampled_from("+-*"), e, e).map(lambda t: op(*t)), max_leaves=12
)
bindings = st.fixed_dictionaries({name: st.integers(-9, 9) for name in "xyn"})


@given(arithmetic, bindings)
def test_a_simplified_expression_has_the_same_value(e: Expr, names: dict[str, int]) -> None:
    assert value(simplify(e), names) == value(e, names)


@given(arithmetic)
def test_simplifying_twice_changes_no_more_and_keeps_the_dtype(e: Expr) -> None:
    once = simplify(e)
    assert simplify(once) == once
    assert once.dtype == e.dtype


@given(arithmetic, bindings)
def test_a_split_expression_adds_up_to_the_whole(e: Expr, names: dict[str, int]) -> None:
    parts = split(e, "x")
    if parts is not None:
        assert value(parts[0], names) * names["x"] + value(parts[1], names) == value(e, names)


@given(arithmetic, arithmetic)
def test_expressions_are_equal_exactly_when_their_polynomials_are(a: Expr, b: Expr) -> None:
    assert equal(a, b) == (polynomial(op("-", a, b)).terms == {})


def test_the_coefficient_of_a_row_is_the_row_length() -> None:
    index = op("+", op("*", op("+", y, 1), n), op("-", x, 1))
    assert coefficient(index, "y") == n
    assert constant(coefficient(index, "x") or y) == 1
    assert constant(coefficient(index, "z") or y) == 0


@pytest.mark.parametrize("e", [op("/", x, 2), op("*", x, x), Load("idx", x, "i32")])
def test_what_is_not_affine_has_no_coefficient(e: Expr) -> None:
    assert coefficient(e, "x") is None


def test_a_widening_cast_survives_in_the_rest_of_a_split() -> None:
    index = op("+", op("*", Cast(y, "u64"), n), x)
    parts = split(index, "x")
    assert parts is not None
    assert Cast(y, "u64") in set(walk(parts[1]))


def test_the_users_factored_shape_is_kept_while_offsets_are_added_up() -> None:
    index = op("+", op("*", op("+", y, 1), n), op("+", op("+", x, 3), -1))
    assert simplify(index) == op("+", op("+", op("*", op("+", y, 1), n), x), 2)


def test_exact_divisions_and_constant_conditions_fold() -> None:
    assert simplify(op("/", op("*", x, 4), 4)) == x
    assert simplify(Select(op("<", 3, 4), x, y, "i32")) == x
    assert simplify(op("/", -7, 2)) == Const(-3, "i32")


def test_floating_zero_is_not_folded_away() -> None:
    v = Var("v", "f32")
    e = Op("*", (v, Const(0.0, "f32")), "f32")
    assert simplify(e) == e


def test_a_load_depends_on_its_buffer_and_its_index() -> None:
    e = Load("a", x, "f32")
    assert depends(e, {"a"})
    assert depends(e, {"x"})
    assert not depends(e, {"y"})


def test_unsigned_comparison_of_constants_follows_c() -> None:
    e = Op("<", (Const(-1, "i32"), Const(np.int64(1).item(), "u32")), "i32")
    assert simplify(e) == Const(0, "i32")
