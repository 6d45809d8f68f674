"""Build index arithmetic in ``i32``, simplified as it is built."""

from __future__ import annotations

from mb_targets.form.affine import simplify
from mb_targets.form.nest import Const, Expr, Op, Operator


def number(n: int) -> Const:
    """Write a whole number."""
    return Const(n, "i32")


def combine(op: Operator, a: Expr, b: Expr) -> Expr:
    """Apply an operator to two indices."""
    return simplify(Op(op, (a, b), "i32"))
