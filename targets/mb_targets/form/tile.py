"""Give each work item a tile of the iteration space: register blocks, lanes, chunks.

An item that takes a whole tile runs the expanded body; the edge of the space, and any tile where a guard of
the user's does not hold throughout, runs the original body in loops.
"""

from __future__ import annotations

from dataclasses import replace

from mb_targets.form.affine import constant, simplify, substitute
from mb_targets.form.dependence import Declined, inline_indices
from mb_targets.form.expand import Expansion, Tiled
from mb_targets.form.interior import conjunction, split_interior
from mb_targets.form.nest import (
    Accumulate,
    Assign,
    Axis,
    Call,
    Cast,
    Const,
    Expr,
    Form,
    If,
    Let,
    Loop,
    Op,
    Stmt,
    Var,
)
from mb_targets.form.traverse import map_expressions, rebuild, statements


def names(form: Form) -> set[str]:
    """Collect every name in use."""
    used = {b.name for b in form.buffers} | {v.name for v in form.scalars} | {a.name for a in form.axes}
    return used | {s.name for s in statements(form.body) if isinstance(s, Let | Loop | Assign | Accumulate)}


def fresh(base: str, taken: set[str]) -> str:
    """Make a name that is not taken, and take it."""
    name, k = base, 0
    while name in taken:
        name, k = f"{base}{k}", k + 1
    taken.add(name)
    return name


def extent(axis: Axis) -> Expr:
    """Give an axis's extent; where only the NDRange tells, the NDRange."""
    if axis.extent is not None:
        return axis.extent
    return Call("get_global_size", (Const(axis.dim, "u32"),), "u64")


def exact(axis: Axis, block: int) -> bool:
    """Tell whether tiles of this size fill the axis with nothing left over."""
    known = None if axis.extent is None else constant(axis.extent)
    return block == 1 or (known is not None and known % block == 0)


def tile(form: Form, sizes: dict[str, tuple[int, int]], whole: frozenset[str] = frozenset()) -> Form:
    """Let each item compute ``jam * lanes`` values along each named axis.

    Args:
        form: An untiled form.
        sizes: Jam and lanes by axis name.
        whole: Axes whose extent is known to be a multiple of the tile.

    Raises:
        Declined: The body cannot be expanded so.
    """
    taken = names(form)
    axes: list[Axis] = []
    tiled: list[Tiled] = []
    for a in form.axes:
        jam, lanes = sizes.get(a.name, (1, 1))
        if jam * lanes == 1:
            axes.append(a)
            continue
        _countable(a)
        first = fresh(f"{a.name}0", taken)
        axes.append(replace(a, name=first, block=jam * lanes * a.block))
        tiled.append(Tiled(a.name, Var(first, a.dtype), jam, lanes))
    if not tiled:
        raise Declined("no such axis")
    tiles = tuple(tiled)
    by_name = {a.name: a for a in form.axes}
    body = inline_indices(form.body)
    # guards on the other axes are settled once for each tile too: a tile of one value
    still = tuple(Tiled(a.name, Var(a.name, a.dtype), 1, 1) for a in axes if a.name in by_name)
    probe = Expansion((*tiles, *still), body, set(taken))
    inside, conditions = split_interior(body, (*tiles, *still), lambda e: bool(probe.of(e)))
    expansion = Expansion(tiles, inside, taken)
    full = expansion.body(inside)
    for t in tiles:
        axis = by_name[t.name]
        if not exact(axis, t.block) and t.name not in whole:
            last = Op("+", (t.start, Const(t.block, "i32")), t.start.dtype)
            conditions.insert(0, Op("<=", (last, extent(axis)), "i32"))
    condition = conjunction(conditions)
    if condition is not None:
        full = (If(condition, full, _edge(form, tiles, by_name, whole)),)
    return replace(form, axes=tuple(axes), body=full)


def _countable(axis: Axis) -> None:
    if axis.level == "group" and axis.extent is None:
        raise Declined("only the launch tells how many groups there are")


def _edge(
    form: Form, tiles: tuple[Tiled, ...], axes: dict[str, Axis], whole: frozenset[str]
) -> tuple[Stmt, ...]:
    """The original body in loops over the tile, clipped to the space."""
    body = form.body
    for t in tiles:
        axis = axes[t.name]
        last: Expr = simplify(Op("+", (t.start, Const(t.block, "i32")), t.start.dtype))
        if not exact(axis, t.block) and t.name not in whole:
            last = Call("min", (last, _as(extent(axis), t.start)), t.start.dtype)
        body = (Loop(t.name, axis.dtype, t.start, last, Const(1, "i32"), body),)
    return body


def _as(e: Expr, like: Expr) -> Expr:
    """Convert to another expression's dtype, which ``min`` needs."""
    return e if e.dtype == like.dtype else Cast(e, like.dtype)


def chunk(form: Form, name: str, size: int) -> Form:
    """Let each item loop over ``size`` consecutive values of an axis.

    Raises:
        Declined: There is no such axis.
    """
    axis = next((a for a in form.axes if a.name == name), None)
    if axis is None:
        raise Declined(f"no axis {name}")
    _countable(axis)
    taken = names(form)
    first = Var(fresh(f"{name}0", taken), axis.dtype)
    last: Expr = Op("+", (first, Const(size, "i32")), axis.dtype)
    clip: tuple[Stmt, ...] = ()
    if not exact(axis, size):
        end = Var(fresh(f"{name}1", taken), axis.dtype)
        clip = (Let(end.name, axis.dtype, Call("min", (last, _as(extent(axis), first)), axis.dtype)),)
        last = end
    loop = Loop(name, axis.dtype, first, last, Const(1, "i32"), form.body)
    axes = tuple(replace(a, name=first.name, block=size) if a is axis else a for a in form.axes)
    return replace(form, axes=axes, body=(*clip, loop))


def widen(form: Form) -> Form:
    """Hold the ids of the axes in ``size_t``, which lets some compilers see consecutive accesses."""
    narrow = {a.name: Cast(Var(a.name, "u64"), a.dtype) for a in form.axes}

    def one(e: Expr) -> Expr:
        if isinstance(e, Call) and e.function in {"min", "max"}:  # both operands must be of one type
            return substitute(e, narrow)
        if isinstance(e, Var) and e.name in narrow:
            return Var(e.name, "u64")
        return rebuild(e, one)

    body = tuple(map_expressions(s, one) for s in form.body)
    return replace(form, axes=tuple(replace(a, dtype="u64") for a in form.axes), body=body)


def interchange(form: Form) -> Form:
    """Swap which dimension of the NDRange the first two axes run along.

    Raises:
        Declined: There are not two item axes.
    """
    if len(form.axes) < 2 or any(a.level != "item" for a in form.axes[:2]):
        raise Declined("there are not two axes to swap")
    x, y, *rest = form.axes
    swapped = (replace(y, dim=x.dim, source=y.dim), replace(x, dim=y.dim, source=x.dim))
    return replace(form, axes=(*swapped, *rest))
