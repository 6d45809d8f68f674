"""Loops over slices around loops within a slice, as one loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mb_targets.form.affine import constant, depends, equal, simplify, substitute
from mb_targets.form.bounds import clamped
from mb_targets.form.conversions import arithmetic
from mb_targets.form.nest import Accumulate, Call, Const, Expr, If, Loop, Op, Select, Stmt, Var
from mb_targets.form.traverse import expressions, map_expressions, statements, transform

Body = tuple[Stmt, ...]


def merged_slices(body: Body, multiples: Mapping[str, int]) -> Body:
    """Merge ``for t .. for i`` into one loop where only the place that both make up matters.

    Args:
        body: Statements.
        multiples: What each scalar is a multiple of.
    """
    out: list[Stmt] = []
    for s in body:
        match s:
            case Loop(body=(Loop() as inner,)) if (one := _merged(s, inner, multiples)) is not None:
                out.append(one)
            case Loop(body=b):
                out.append(replace(s, body=merged_slices(b, multiples)))
            case If(condition=c, then=t, otherwise=o):
                out.append(If(c, merged_slices(t, multiples), merged_slices(o, multiples)))
            case _:
                out.append(s)
    return tuple(out)


def _merged(outer: Loop, inner: Loop, multiples: Mapping[str, int]) -> Loop | None:
    """Merge two loops; None where their order or the slice itself matters."""
    width, step = constant(inner.stop), constant(outer.step)
    if width is None or width < 2 or (constant(inner.start), constant(inner.step)) != (0, 1):
        return None
    if step not in {1, width} or (step == 1 and constant(outer.start) != 0):
        return None
    slice_ = Var(outer.name, outer.dtype)
    first = slice_ if step == width else arithmetic("*", Const(width, "i32"), slice_)
    values: dict[str, Expr] = {inner.name: arithmetic("-", Var(inner.name, inner.dtype), first)}
    body = tuple(map_expressions(s, lambda e: simplify(substitute(e, values))) for s in inner.body)
    if any(depends(e, {outer.name}) for s in statements(body) for e in expressions(s)):
        return None
    whole = _whole(outer, width, multiples)
    body = tuple(_guarded(s) for s in body)
    loop = Loop(inner.name, inner.dtype, outer.start, outer.stop, Const(1, inner.dtype), body)
    if whole:
        return loop
    # the last slice may reach past the end: what is guarded against that ends there
    limit = outer.stop if step == width else _divided_up(outer.stop, width)
    if limit is None:
        return None
    unbounded = clamped(replace(loop, stop=Const(0, inner.dtype)))
    match unbounded.stop:
        case Call(function="min", args=(_, bound)) if equal(bound, limit):
            return replace(loop, stop=limit, body=unbounded.body)
        case _:
            return None


def _whole(outer: Loop, width: int, multiples: Mapping[str, int]) -> bool:
    """Tell whether the slices end where the loop does."""
    if constant(outer.step) != width:
        return False
    length = simplify(arithmetic("-", outer.stop, outer.start))
    known = constant(length)
    if known is not None:
        return known % width == 0
    return isinstance(length, Var) and multiples.get(length.name, 1) % width == 0


def _divided_up(e: Expr, width: int) -> Expr | None:
    """Read ``(n + width - 1) / width`` as ``n``."""
    match e:
        case Op(op="/", args=(a, b)) if constant(b) == width:
            return simplify(arithmetic("-", a, Const(width - 1, "i32")))
        case _:
            return None


def _guarded(s: Stmt) -> Stmt:
    """Write ``s += (c ? x : 0) * (c ? y : 0)`` as ``if (c) s += x * y``."""
    if not (isinstance(s, Accumulate) and s.op == "+"):
        return s
    match transform(s.value, _factored):
        case Select(condition=c, yes=y, no=Const(value=0)):
            return If(c, (replace(s, value=y),))
        case _:
            return s


def _factored(e: Expr) -> Expr:
    """Take one test out of a product whose factors are zero where it fails."""
    match e:
        case Op(
            op="*",
            args=(
                Select(condition=c, yes=x, no=Const(value=0) as zero),
                Select(condition=d, yes=y, no=Const(value=0)),
            ),
        ) if equal(c, d):
            return Select(c, replace(e, args=(x, y)), zero, e.dtype)
        case _:
            return e
