"""Stage a stencil's input through local memory: a tile and the margin around it, loaded once by a group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mb_targets.form.affine import constant, depends, polynomial, split
from mb_targets.form.dependence import Declined, inline_indices
from mb_targets.form.indices import combine, number
from mb_targets.form.interior import conjunction, conjuncts
from mb_targets.form.nest import (
    Array,
    Axis,
    Barrier,
    Call,
    Const,
    Expr,
    Form,
    If,
    Let,
    Load,
    Loop,
    Op,
    Select,
    Stmt,
    Store,
    Var,
)
from mb_targets.form.tile import extent, fresh, names
from mb_targets.form.traverse import loads, map_expressions, statements, transform

Ranges = Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Margin:
    """Where a stencil reads, relative to its own place.

    Attributes:
        buffer: What it reads.
        pitch: Elements from one row to the next.
        row: The offset along the second axis, over the loops' variables.
        column: The offset along the first axis.
        rows: Least and greatest row offset.
        columns: Least and greatest column offset.
    """

    buffer: str
    pitch: Expr
    row: Expr
    column: Expr
    rows: tuple[int, int]
    columns: tuple[int, int]


def stage_stencil(form: Form, width: int, height: int) -> Form:
    """Let groups of ``width`` by ``height`` items load the part of the input that they share.

    Raises:
        Declined: The body does not read one buffer at constant distances along two axes.
    """
    taken = names(form)
    axes = sorted(form.axes, key=lambda a: a.dim)
    if len(axes) != 2 or any(a.level != "item" or a.block != 1 for a in axes):
        raise Declined("it takes two axes of items")
    x, y = axes
    body = inline_indices(form.body)
    ranges = _constant_loops(body)
    load, margin = _margin(body, x, y, ranges)
    first = {a.name: Var(fresh(f"{a.name}0", taken), "i32") for a in axes}
    item = {x.name: Var(fresh("lx", taken), "i32"), y.name: Var(fresh("ly", taken), "i32")}
    columns = width + margin.columns[1] - margin.columns[0]
    rows = height + margin.rows[1] - margin.rows[0]
    tile = fresh(f"{margin.buffer}_tile", taken)
    e = Var(fresh("e", taken), "i32")
    near = {a.name: Var(fresh(f"near_{a.name}", taken), "i32") for a in axes}
    where = (
        Let(
            near[x.name].name,
            "i32",
            combine(
                "+", combine("+", first[x.name], combine("%", e, number(columns))), number(margin.columns[0])
            ),
        ),
        Let(
            near[y.name].name,
            "i32",
            combine(
                "+", combine("+", first[y.name], combine("/", e, number(columns))), number(margin.rows[0])
            ),
        ),
    )
    index = combine("+", combine("*", near[y.name], margin.pitch), near[x.name])
    value: Expr = Load(margin.buffer, index, load.dtype)
    reach = [
        Op("<", (near[a.name], combine("+", extent(a), number(most))), "i32")
        for a, most in ((x, margin.columns[1]), (y, margin.rows[1]))
    ]
    places = {
        a.name: (Op("+", (Var(a.name, "i32"), offset), "i32"), near[a.name])
        for a, offset in ((x, margin.column), (y, margin.row))
    }
    guards = _guards(body, places)
    guard = conjunction([*guards, *reach])
    assert guard is not None
    value = Select(guard, value, Const(0.0, load.dtype), load.dtype)
    start = combine("+", combine("*", item[y.name], number(width)), item[x.name])
    fill = Loop(
        e.name, "i32", start, number(rows * columns), number(width * height), (*where, Store(tile, e, value))
    )

    def staged(f: Expr) -> Expr:
        if not (isinstance(f, Load) and f.buffer == margin.buffer):
            return f
        row = combine("+", combine("-", item[y.name], number(margin.rows[0])), margin.row)
        column = combine("+", combine("-", item[x.name], number(margin.columns[0])), margin.column)
        return replace(f, buffer=tile, index=combine("+", combine("*", row, number(columns)), column))

    inner = tuple(map_expressions(s, lambda f: transform(f, staged)) for s in body)
    inside = conjunction(Op("<", (Var(a.name, a.dtype), extent(a)), "i32") for a in axes)
    assert inside is not None
    own: list[Stmt] = [
        Let(item[a.name].name, "i32", Call("get_local_id", (number(a.dim),), "i32")) for a in axes
    ]
    own += [Let(a.name, a.dtype, combine("+", first[a.name], item[a.name])) for a in axes]
    framed = tuple(
        replace(a, name=first[a.name].name, dtype="i32", level="tile", guarded=False, block=n)
        for a, n in ((x, width), (y, height))
    )
    whole = (Array(tile, load.dtype, rows * columns, "local"), *own, fill, Barrier(), If(inside, inner))
    return replace(form, axes=framed, body=whole)


def _constant_loops(body: tuple[Stmt, ...]) -> dict[str, tuple[int, int]]:
    """Give the range of each loop's variable; they must all be constant and short."""
    found: dict[str, tuple[int, int]] = {}
    for s in statements(body):
        if isinstance(s, Loop):
            low, stop, step = constant(s.start), constant(s.stop), constant(s.step)
            if low is None or stop is None or step != 1 or not 0 < stop - low <= 32:
                raise Declined(f"loop {s.name} has no short constant range")
            found[s.name] = (low, stop - 1)
    if not found:
        raise Declined("there is no loop over neighbours")
    return found


def _margin(body: tuple[Stmt, ...], x: Axis, y: Axis, ranges: Ranges) -> tuple[Load, Margin]:
    """Find the one load that reads neighbours."""
    found = [e for e in loads(body) if depends(e.index, (x.name,)) and depends(e.index, (y.name,))]
    if len(found) != 1:
        raise Declined("it does not read one buffer around each place")
    load = found[0]
    along = split(load.index, x.name)
    down = None if along is None else split(along[1], y.name)
    if along is None or down is None or constant(along[0]) != 1:
        raise Declined(f"{load.buffer} is not walked along its rows")
    row, column = _offsets(down[1], down[0], ranges)
    return load, Margin(load.buffer, down[0], row, column, _reach(row, ranges), _reach(column, ranges))


def _offsets(rest: Expr, pitch: Expr, ranges: Ranges) -> tuple[Expr, Expr]:
    """Split what is left of a subscript into whole rows and columns."""
    p = polynomial(rest)
    width = constant(pitch)
    name = pitch.name if isinstance(pitch, Var) else ""
    if width is None and not name:
        raise Declined("the length of a row is no single number")
    row: Expr = number(0)
    column: Expr = number(0)
    for monomial, c in p.terms.items():
        others = [n for n in monomial if n != name]
        if any(n not in ranges for n in others) or len(others) > 1:
            raise Declined("the neighbours are not at constant distances")
        whole = (name in monomial) if name else (abs(c) * 2 > (width or 0))
        count = c if name else round(c / width) if whole and width else c
        left = 0 if name or not whole or not width else c - count * width
        unit: Expr = p.atoms[others[0]] if others else number(1)
        if whole:
            row = combine("+", row, combine("*", number(count), unit))
            column = combine("+", column, combine("*", number(left), unit))
        else:
            column = combine("+", column, combine("*", number(c), unit))
    return row, column


def _reach(offset: Expr, ranges: Ranges) -> tuple[int, int]:
    """Give the least and the greatest value of an offset."""
    low = high = 0
    for monomial, c in polynomial(offset).terms.items():
        ends = [c * n for n in ranges[monomial[0]]] if monomial else [c, c]
        low, high = low + min(ends), high + max(ends)
    return low, high


def _guards(body: tuple[Stmt, ...], places: Mapping[str, tuple[Expr, Expr]]) -> list[Expr]:
    """Write the bounds checks of the load about a neighbour's place.

    Args:
        body: The body.
        places: By axis: how the body writes a neighbour's place, and the variable that holds it.
    """

    def one(side: Expr) -> Expr:
        mine = [a for a in places if depends(side, (a,))]
        if not mine:
            return side
        written, place = places[mine[0]]
        away = constant(combine("-", side, written))
        if len(mine) != 1 or away is None:
            raise Declined("a guard is not about one neighbour's place")
        return combine("+", place, number(away))

    found = [g for s in statements(body) if isinstance(s, If) for g in conjuncts(s.condition)]
    if any(not (isinstance(g, Op) and len(g.args) == 2) for g in found):
        raise Declined("a guard is no comparison")
    return [replace(g, args=tuple(map(one, g.args))) for g in found if isinstance(g, Op)]
