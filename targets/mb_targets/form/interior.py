"""Split off bounds checks: find the condition under which every iteration of a tile passes its guards.

A guard is a conjunction of comparisons that are affine in the tiled dimensions and in the variables of
loops around it. Each comparison ``d > 0`` holds in the whole tile exactly when the least value of ``d`` over
the tile and over those loops is positive, which is a comparison of the tile's first values alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from mb_targets.form.affine import constant, depends, equal, polynomial, simplify, split, substitute, total
from mb_targets.form.dtypes import is_integer
from mb_targets.form.expand import Tiled
from mb_targets.form.nest import Const, Expr, If, Loop, Op, Select, Stmt
from mb_targets.form.traverse import map_expressions, transform

Ranges = Mapping[str, tuple[Expr, Expr]]
"""The least and the greatest value of each loop variable in scope."""


def conjuncts(e: Expr) -> list[Expr]:
    """Flatten a conjunction."""
    if isinstance(e, Op) and e.op == "&&":
        return [c for a in e.args for c in conjuncts(a)]
    return [e]


def conjunction(terms: Iterable[Expr]) -> Expr | None:
    """Join conditions, equal ones once; None for none."""
    kept: list[Expr] = []
    for t in map(simplify, terms):
        if not (isinstance(t, Const) and t.value) and not any(equal(t, k) for k in kept):
            kept.append(t)
    strict = [t for t in kept if isinstance(t, Op) and t.op == "<"]
    whole: Expr | None = None
    for t in kept:
        if isinstance(t, Op) and t.op == "<=" and any(_same_sides(t, s) for s in strict):
            continue
        whole = t if whole is None else Op("&&", (whole, t), "i32")
    return whole


def _same_sides(a: Op, b: Op) -> bool:
    return equal(a.args[0], b.args[0]) and equal(a.args[1], b.args[1])


def _positive(comparison: Expr) -> Expr | None:
    """Write a comparison of integers as an expression that is positive exactly when it holds."""
    if not (isinstance(comparison, Op) and len(comparison.args) == 2):
        return None
    a, b = comparison.args
    if not (is_integer(a.dtype) and is_integer(b.dtype)):
        return None
    match comparison.op:
        case "<":
            return Op("-", (b, a), "i64")
        case ">":
            return Op("-", (a, b), "i64")
        case "<=":
            return Op("+", (Op("-", (b, a), "i64"), Const(1, "i64")), "i64")
        case ">=":
            return Op("+", (Op("-", (a, b), "i64"), Const(1, "i64")), "i64")
        case _:
            return None


def _least(d: Expr, tiled: tuple[Tiled, ...], ranges: Ranges) -> Expr | None:
    """Give the least value of ``d`` over the tile and the loops; None when that is not known."""
    for name, (low, high) in reversed(list(ranges.items())):
        if not depends(d, (name,)):
            continue
        parts = split(d, name)
        slope = None if parts is None else constant(parts[0])
        if slope is None:
            return None
        d = substitute(d, {name: low if slope > 0 else high})
    for t in tiled:
        parts = split(d, t.name)
        slope = None if parts is None else constant(parts[0])
        if slope is None:
            return None
        d = Op("+", (substitute(d, {t.name: t.start}), Const(min(0, slope * (t.block - 1)), "i64")), "i64")
    return d


def _as_comparison(d: Expr) -> Expr:
    """Write ``d > 0`` without minus signs: what is subtracted on the left, what is added on the right."""
    p = polynomial(d)

    def side(sign: int) -> Expr:
        terms = [(sign * c, _factor(p.atoms, m)) for m, c in p.terms.items() if m and sign * c > 0]
        offset = max(0, sign * p.terms.get((), 0))
        return total(terms, offset, "i32")

    left, right = side(-1), side(1)
    if isinstance(right, Const) and right.value == 1:  # a < 1 + 0 reads better the other way round
        return Op("<=", (left, Const(0, "i32")), "i32")
    one = constant(left)
    if one is not None and one >= 1 and p.terms.get((), 0) < 0:
        return Op(">=", (right, Const(one + 1, "i32")), "i32") if one else Op(">", (right, left), "i32")
    return Op("<", (left, right), "i32")


def _factor(atoms: Mapping[str, Expr], monomial: tuple[str, ...]) -> Expr:
    e = atoms[monomial[0]]
    for n in monomial[1:]:
        e = Op("*", (e, atoms[n]), "i32")
    return e


def split_interior(
    body: tuple[Stmt, ...], tiled: tuple[Tiled, ...], varies: Callable[[Expr], bool]
) -> tuple[tuple[Stmt, ...], list[Expr]]:
    """Take out the guards that can be decided for a whole tile.

    Args:
        body: The body; subscripts must have been inlined.
        tiled: The dimensions of the tile.
        varies: Whether an expression depends on them.

    Returns:
        The body without those guards, and the conditions under which it does what the body does.
    """
    conditions: list[Expr] = []

    def decide(c: Expr, ranges: Ranges) -> Expr:
        """Replace the decided conjuncts of a guard by nothing."""
        if not varies(c):
            return c
        left: list[Expr] = []
        for term in conjuncts(c):
            d = _positive(term) if varies(term) else None
            least = None if d is None else _least(d, tiled, ranges)
            if least is None:
                left.append(term)
            else:
                conditions.append(_as_comparison(least))
        return conjunction(left) or Const(1, "i32")

    def in_expression(ranges: Ranges) -> Callable[[Expr], Expr]:
        def one(e: Expr) -> Expr:
            if not isinstance(e, Select):
                return e
            c = decide(e.condition, ranges)
            return e.yes if isinstance(c, Const) and c.value else replace(e, condition=c)

        return lambda e: transform(e, one)

    def visit(stmts: tuple[Stmt, ...], ranges: Ranges) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for s in stmts:
            match s:
                case Loop(name=n, start=a, stop=b, step=c):
                    last: Expr = Op("-", (b, Const(1, b.dtype)), b.dtype)
                    inner = {**ranges, n: (a, last)} if constant(c) is not None else ranges
                    out.append(replace(s, body=visit(s.body, inner)))
                case If(condition=c, then=t, otherwise=o):
                    decided = decide(c, ranges)
                    if isinstance(decided, Const) and decided.value:
                        out += visit(t, ranges)
                    else:
                        out.append(If(decided, visit(t, ranges), visit(o, ranges)))
                case _:
                    out.append(map_expressions(s, in_expression(ranges)))
        return tuple(out)

    return visit(body, {}), conditions
