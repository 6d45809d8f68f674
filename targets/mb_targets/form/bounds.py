"""Tests around a loop's whole body, as part of where the loop ends."""

from __future__ import annotations

from dataclasses import replace

from mb_targets.form.affine import constant, depends, split
from mb_targets.form.canonical import conjuncts
from mb_targets.form.conversions import arithmetic, convert
from mb_targets.form.nest import Call, Cast, Const, Expr, If, Let, Loop, Op, Stmt, Var
from mb_targets.form.traverse import transform
from mb_targets.model import Dtype


def clamped(loop: Loop) -> Loop:
    """Move a test of the loop's variable against a bound, around its whole body, into the loop's end."""
    lets = next((k for k, s in enumerate(loop.body) if not isinstance(s, Let)), len(loop.body))
    match loop.body[lets:]:
        case (If(condition=c, then=then, otherwise=()),):
            pass
        case _:
            return loop
    stop, left = loop.stop, None
    for part in conjuncts(c):
        limit = _limit(part, loop)
        if limit is not None:
            stop = Call("min", (stop, limit), loop.dtype)
        else:
            left = part if left is None else Op("&&", (left, part), "i32")
    if stop is loop.stop:
        return loop
    inner: tuple[Stmt, ...] = then if left is None else (If(left, then),)
    return replace(loop, stop=stop, body=(*loop.body[:lets], *inner))


def _limit(e: Expr, loop: Loop) -> Expr | None:
    """Read ``base + i < n`` as the end ``n - base`` of a loop over ``i``."""
    match e:
        case Op(op="<", args=(a, b)) | Op(op=">", args=(b, a)):
            pass
        case _:
            return None
    parts = split(a, loop.name)
    if parts is None or constant(parts[0]) != 1 or depends(b, {loop.name}):
        return None
    wide: Dtype = "i64" if {a.dtype, b.dtype} & {"i64", "u64"} else "i32"
    base = parts[1]
    limit = b if constant(base) == 0 else arithmetic("-", _signed(b, wide), _signed(base, wide))
    return convert(limit, loop.dtype)


def _signed(e: Expr, dtype: Dtype) -> Expr:
    """Make every variable signed, so that a difference below zero stays below zero."""

    def one(x: Expr) -> Expr:
        match x:
            case Var() if x.dtype[0] == "u":
                return convert(x, dtype)
            case Const(value=v) if x.dtype[0] == "u":
                return Const(v, dtype)
            case Op(op="+" | "-" | "*" as op, args=(a, b)):
                return arithmetic(op, a, b)
            case Cast(value=v) if x.dtype[0] == "u" and v.dtype == dtype:
                return v
            case _:
                return x

    return transform(e, one)
