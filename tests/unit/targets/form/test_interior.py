"""Guards are split off a tile where its first values decide them."""

from __future__ import annotations

from mb_targets.form.expand import Tiled
from mb_targets.form.interior import conjunction, conjuncts, split_interior
from mb_targets.form.nest import Const, Expr, If, Load, Loop, Op, Operator, Select, Stmt, Store, Var
from mb_targets.form.traverse import walk

ID, N, K = Var("i", "i32"), Var("n", "i32"), Var("k", "i32")
FIRST = Var("i0", "i32")
TILE = (Tiled("i", FIRST, 4, 1),)


def op(operator: Operator, a: Expr, b: Expr) -> Op:
    return Op(operator, (a, b), "i32")


def number(n: int) -> Const:
    return Const(n, "i32")


def store(value: Expr | None = None) -> Store:
    return Store("o", ID, value or Const(1.0, "f32"))


def varies(e: Expr) -> bool:
    return any(isinstance(x, Var) and x.name == "i" for x in walk(e))


def split(*body: Stmt) -> tuple[tuple[Stmt, ...], list[Expr]]:
    return split_interior(body, TILE, varies)


def test_nested_conjunctions_are_flattened() -> None:
    a, b, c = (op("<", v, N) for v in (ID, K, FIRST))
    assert conjuncts(op("&&", op("&&", a, b), c)) == [a, b, c]


def test_equal_and_true_terms_are_joined_once() -> None:
    inside = op("<", ID, N)
    assert conjunction([inside, number(1), inside]) == inside


def test_a_weaker_comparison_is_dropped_beside_its_strict_one() -> None:
    assert conjunction([op("<=", ID, N), op("<", ID, N)]) == op("<", ID, N)


def test_no_terms_are_no_condition() -> None:
    assert conjunction([]) is None


def test_an_upper_bound_is_decided_by_the_tiles_last_value() -> None:
    inside, conditions = split(If(op("<", ID, N), (store(),)))
    assert inside == (store(),)
    assert conditions == [op("<", op("+", FIRST, number(3)), N)]


def test_a_lower_bound_is_decided_by_the_tiles_first_value() -> None:
    inside, conditions = split(If(op(">=", ID, number(2)), (store(),)))
    assert inside == (store(),)
    assert conditions == [op(">=", FIRST, number(2))]


def test_a_guard_inside_a_loop_must_hold_for_all_its_iterations() -> None:
    guard = If(op("<", op("+", ID, K), N), (store(),))
    loop = Loop("k", "i32", number(0), number(3), number(1), (guard,))
    inside, conditions = split(loop)
    assert inside == (Loop("k", "i32", number(0), number(3), number(1), (store(),)),)
    assert conditions == [op("<", op("+", FIRST, number(5)), N)]


def test_a_select_between_a_value_and_its_padding_is_decided_too() -> None:
    value = Load("a", ID, "f32")
    padded = Select(op("<", ID, N), value, Const(0.0, "f32"), "f32")
    inside, conditions = split(store(padded))
    assert inside == (store(value),)
    assert len(conditions) == 1


def test_a_guard_that_is_not_affine_stays() -> None:
    guard = If(op("<", op("*", ID, ID), N), (store(),))
    assert split(guard) == ((guard,), [])


def test_a_guard_on_data_stays_beside_the_bound_that_goes() -> None:
    positive = Op(">", (Load("a", ID, "f32"), Const(0.0, "f32")), "i32")
    inside, conditions = split(If(op("&&", op("<", ID, N), positive), (store(),)))
    assert inside == (If(positive, (store(),)),)
    assert len(conditions) == 1


def test_a_guard_that_the_tile_does_not_move_stays() -> None:
    guard = If(op("<", K, N), (store(),))
    assert split(guard) == ((guard,), [])
