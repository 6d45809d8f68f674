"""Regroup partial results: where only the fold of an output matters, let few items take long chunks.

A kernel that leaves one partial sum a work group leaves as many as the launch has groups. If the launch says
that only their sum matters, a handful of items can each sum a long contiguous chunk; the other partials are
set to the fold's identity, so that the host's own final sum is right unchanged.
"""

from __future__ import annotations

from dataclasses import replace

from mb_targets.form.affine import coefficient, constant, equal, simplify, split
from mb_targets.form.dependence import Declined, inline_indices
from mb_targets.form.nest import (
    Accumulate,
    Axis,
    Call,
    Cast,
    Const,
    Expr,
    Form,
    Let,
    Load,
    Loop,
    Op,
    Stmt,
    Store,
    Var,
)
from mb_targets.form.tile import fresh, names
from mb_targets.form.traverse import loads, map_expressions, transform


def regroup(form: Form, items: int, folded: frozenset[str]) -> Form:
    """Give each of ``items`` items a contiguous share of what all groups fold.

    Raises:
        Declined: The body is no fold of a contiguous range into one element a group, or the output's every
            element matters.
    """
    axis, let, loop, store = _shape(form, folded)
    if axis.extent is None:
        raise Declined("only the launch tells how many partials there are")
    taken = names(form)
    length = simplify(Op("-", (loop.stop, loop.start), loop.dtype))
    width = constant(length)
    position = fresh("i", taken)
    body, total = _merged(axis, loop, width, position)
    item = Var(fresh("part", taken), axis.dtype)
    share, many, first, last = (Var(fresh(n, taken), "i32") for n in ("share", "parts", "first", "last"))
    groups = _as_i32(axis.extent)
    rounded = Op("/", (Op("-", (Op("+", (total, many), "i32"), Const(1, "i32")), "i32"), many), "i32")
    end = Call("min", (Op("+", (first, share), "i32"), total), "i32")
    rest = Loop(
        axis.name,
        axis.dtype,
        Op("+", (item, many), "i32"),
        groups,
        many,
        (Store(store.buffer, Var(axis.name, axis.dtype), Const(0.0, let.dtype)),),
    )
    stmts: tuple[Stmt, ...] = (
        Let(many.name, "i32", _fewer(items, groups)),
        Let(share.name, "i32", rounded),
        Let(first.name, "i32", Op("*", (_as_i32(item), share), "i32")),
        Let(last.name, "i32", end),
        let,
        Loop(position, "i32", first, last, Const(1, "i32"), body),
        Store(store.buffer, item, store.value),
        rest,
    )
    one = replace(axis, name=item.name, extent=_fewer(items, groups), guarded=True, level="item")
    return replace(form, axes=(one,), body=stmts)


def _fewer(items: int, groups: Expr) -> Expr:
    """There is room for no more partials than the launch had groups."""
    return Call("min", (Const(items, "i32"), groups), "i32")


def _as_i32(e: Expr) -> Expr:
    return e if e.dtype == "i32" else Cast(e, "i32")


def _shape(form: Form, folded: frozenset[str]) -> tuple[Axis, Let, Loop, Store]:
    match form.body:
        case (Let() as let, Loop() as loop, Store() as store):
            pass
        case _:
            raise Declined("the body is more than one fold")
    if len(form.axes) != 1:
        raise Declined("there is more than one axis")
    axis = form.axes[0]
    if store.buffer not in folded:
        raise Declined(f"every element of {store.buffer} matters")
    if not equal(store.index, Var(axis.name, axis.dtype)) or store.value != Var(let.name, let.dtype):
        raise Declined("the partials are not stored one a group")
    if not all(isinstance(s, Accumulate) and s.op == "+" and s.name == let.name for s in loop.body[-1:]):
        raise Declined("it is no sum")
    return axis, let, loop, store


def _merged(axis: Axis, loop: Loop, width: int | None, position: str) -> tuple[tuple[Stmt, ...], Expr]:
    """Write the loop's body over the position in the whole range, and give that range's length."""
    body = inline_indices(loop.body)
    found = [load.index for load in loads(body)]
    if not found:
        raise Declined("it reads nothing")
    stride = coefficient(found[0], axis.name)
    step = constant(stride) if stride is not None else None
    if step is None or step <= 0:
        raise Declined("the groups' ranges do not follow each other")
    total: Expr
    if width is not None and width == step:
        assert axis.extent is not None
        total = Op("*", (_as_i32(axis.extent), Const(step, "i32")), "i32")
    else:
        total = _clamp(loop.stop, axis, step)
    place = Var(position, "i32")

    def one(e: Expr) -> Expr:
        parts = split(e, axis.name)
        if parts is None or constant(parts[0]) != step:
            return e
        inner = split(parts[1], loop.name)
        if inner is None or constant(inner[0]) != 1:
            raise Declined("an element is not read at its own position")
        return simplify(Op("+", (place, inner[1]), "i32"))

    def on_loads(e: Expr) -> Expr:
        return transform(e, lambda x: replace(x, index=one(x.index)) if isinstance(x, Load) else x)

    return tuple(map_expressions(s, on_loads) for s in body), total


def _clamp(stop: Expr, axis: Axis, step: int) -> Expr:
    """Find ``n`` in a loop's stop ``min(step, n - group * step)``."""
    if isinstance(stop, Call) and stop.function == "min":
        for e in stop.args:
            parts = split(e, axis.name)
            if parts is not None and constant(parts[0]) == -step:
                return _as_i32(parts[1])
    raise Declined("the range's end is not known")
