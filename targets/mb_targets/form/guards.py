"""Tests around a whole body: what they say of the axes, and of what is inside them."""

from __future__ import annotations

from mb_targets.form.affine import depends, equal, simplify
from mb_targets.form.canonical import conjuncts
from mb_targets.form.conversions import arithmetic
from mb_targets.form.dialect import GLOBAL, GROUP
from mb_targets.form.dtypes import is_integer
from mb_targets.form.nest import Accumulate, Assign, Cast, Const, Expr, If, Let, Loop, Op, Stmt, Var
from mb_targets.form.traverse import map_expressions, statements, transform, walk


def sunk(body: tuple[Stmt, ...], scalars: set[str]) -> tuple[Stmt, ...]:
    """Move what only the branch of a last test of ids against sizes uses into the branch."""
    match body:
        case (*before, If(condition=c, then=then, otherwise=())):
            inside = list(statements(tuple(before)))
        case _:
            return body
    changed = {s.name for s in inside if isinstance(s, Let | Assign | Accumulate | Loop)}
    silent = all(isinstance(s, Let | Assign | Accumulate | Loop | If) for s in inside)
    bounded = any(_bound(part, scalars) is not None for part in conjuncts(c))
    if not silent or not bounded or depends(c, changed):
        return body
    inner = (*before, *then)
    for part in conjuncts(c):
        inner = assuming(inner, part)
    return (If(c, inner),)


def assuming(body: tuple[Stmt, ...], condition: Expr) -> tuple[Stmt, ...]:
    """Leave out a test that is known to hold."""

    def one(e: Expr) -> Expr:
        if isinstance(e, Op) and e.dtype == "i32" and equal(e, condition):
            return Const(1, "i32")
        return e

    def known(e: Expr) -> Expr:
        new = transform(e, one)
        return e if new == e else simplify(new)

    return tuple(map_expressions(s, known) for s in body)


def take_guards(body: tuple[Stmt, ...], scalars: set[str]) -> tuple[tuple[Stmt, ...], dict[str, Expr]]:
    """Take tests of ids against sizes off a whole body.

    Returns:
        The body inside them, and each id's bound.
    """
    bounds: dict[str, Expr] = {}
    while True:
        lets = next((k for k, s in enumerate(body) if not isinstance(s, Let)), len(body))
        match body[lets:]:
            case (If(condition=c, then=then, otherwise=()),):
                pass
            case _:
                return body, bounds
        left: Expr | None = None
        for part in conjuncts(c):
            bound = _bound(part, scalars)
            if bound is not None and bound[0] not in bounds:
                bounds[bound[0]] = bound[1]
                then = assuming(then, part)
            else:
                left = part if left is None else Op("&&", (left, part), "i32")
        if left is not None:
            return (*body[:lets], If(left, then)), bounds
        body = (*body[:lets], *then)


def _bound(e: Expr, scalars: set[str]) -> tuple[str, Expr] | None:
    """Read ``id < size``."""
    match e:
        case Op(op=">" | ">=" as op, args=(b, a)):
            op = "<" if op == ">" else "<="
        case Op(op="<" | "<=" as op, args=(a, b)):
            pass
        case _:
            return None
    a = a.value if isinstance(a, Cast) and is_integer(a.dtype) else a
    fixed = all(
        isinstance(x, Const | Op | Cast) or (isinstance(x, Var) and x.name in scalars) for x in walk(b)
    )
    if not (isinstance(a, Var) and a.name.startswith((GLOBAL, GROUP)) and fixed and is_integer(b.dtype)):
        return None
    return a.name, b if op == "<" else simplify(arithmetic("+", b, Const(1, "i32")))
