"""Stage operands through local memory: tiles that a work group loads once and its items read many times.

Two shapes: a contraction, whose loop is cut into slices for which the group loads a tile of each operand;
and a transposition, whose tile is read along one axis and written along the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mb_targets.form.affine import coefficient, constant, depends, simplify, substitute
from mb_targets.form.dependence import Declined, inline_indices
from mb_targets.form.expand import Expansion, Tiled
from mb_targets.form.indices import combine, number
from mb_targets.form.interior import conjunction
from mb_targets.form.nest import (
    Accumulate,
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
from mb_targets.form.traverse import loads, map_expressions, transform, walk

ZERO, ONE = Const(0, "i32"), Const(1, "i32")


@dataclass(frozen=True, slots=True)
class Group:
    """A work group over two axes, and what an item of it is called by.

    Attributes:
        size: Items along each axis.
        jam: Results an item computes along each axis, ``size`` apart.
        first: The tile's first value along each axis.
        item: The item's place in the group along each axis.
    """

    axes: tuple[Axis, Axis]
    size: tuple[int, int]
    jam: tuple[int, int]
    first: tuple[Var, Var]
    item: tuple[Var, Var]

    @property
    def span(self) -> tuple[int, int]:
        """Values of each axis in a tile."""
        return self.size[0] * self.jam[0], self.size[1] * self.jam[1]

    def of(self, name: str) -> int:
        """Number an axis by its name."""
        return 0 if name == self.axes[0].name else 1


def _group(form: Form, size: tuple[int, int], jam: tuple[int, int], taken: set[str]) -> Group:
    axes = tuple(sorted((a for a in form.axes if a.dim < 2), key=lambda a: a.dim))
    if len(axes) != 2 or len(form.axes) != 2 or any(a.level != "item" for a in axes):
        raise Declined("it takes two axes of items")
    x, y = axes
    first = (Var(fresh(f"{x.name}0", taken), "i32"), Var(fresh(f"{y.name}0", taken), "i32"))
    item = (Var(fresh("lx", taken), "i32"), Var(fresh("ly", taken), "i32"))
    return Group((x, y), size, jam, first, item)


def _frame(form: Form, group: Group, body: tuple[Stmt, ...]) -> Form:
    ids = tuple(Let(group.item[d].name, "i32", Call("get_local_id", (number(d),), "i32")) for d in (0, 1))
    axes = tuple(
        replace(a, name=group.first[d].name, dtype="i32", level="tile", guarded=False, block=group.span[d])
        for d, a in enumerate(group.axes)
    )
    return replace(form, axes=axes, body=(*ids, *body))


@dataclass(frozen=True, slots=True)
class Operand:
    """What a contraction loads of one buffer, and the local tile that holds a slice of it.

    Attributes:
        load: The load as the user wrote it.
        axis: The axis that it depends on besides the loop.
        array: The tile's name.
        along: The one of loop and axis that walks consecutive elements: the tile's columns.
        across: The other one: the tile's rows.
        rows: Rows of the tile.
        columns: Columns of the tile; a row takes one element more, which keeps banks apart.
    """

    load: Load
    axis: int
    array: str
    along: str
    across: str
    rows: int
    columns: int

    @property
    def tile(self) -> Array:
        """The tile's declaration."""
        return Array(self.array, self.load.dtype, self.rows * (self.columns + 1), "local")

    def cell(self, row: Expr, column: Expr) -> Expr:
        """Number an element of the tile."""
        return combine("+", combine("*", row, number(self.columns + 1)), column)


def _operand(load: Load, group: Group, loop: Loop, depth: int, taken: set[str]) -> Operand:
    axes = [a for a in group.axes if depends(load.index, (a.name,))]
    if len(axes) != 1 or not depends(load.index, (loop.name,)):
        raise Declined(f"{load.buffer} is not walked by the loop and one axis")
    axis = group.of(axes[0].name)
    along, across = _unit(load, loop.name, axes[0].name)
    sizes = {loop.name: depth, axes[0].name: group.span[axis]}
    array = fresh(f"{load.buffer}_tile", taken)
    return Operand(load, axis, array, along, across, sizes[across], sizes[along])


def _fill(operand: Operand, group: Group, loop: Loop, slice_: Var, depth: int, taken: set[str]) -> Stmt:
    """Let the items of a group load a tile together, neighbours taking neighbouring columns."""
    axis = group.axes[operand.axis]
    e = Var(fresh("e", taken), "i32")
    row, column = combine("/", e, number(operand.columns)), combine("%", e, number(operand.columns))
    first = {loop.name: slice_, axis.name: group.first[operand.axis]}
    places: dict[str, Expr] = {
        operand.along: combine("+", first[operand.along], column),
        operand.across: combine("+", first[operand.across], row),
    }
    guard = conjunction(
        Op("<", (places[name], stop), "i32")
        for name, stop, exact in (
            (loop.name, loop.stop, _even(loop, depth)),
            (axis.name, extent(axis), _fits(axis, group.span[operand.axis])),
        )
        if not exact
    )
    load = operand.load
    value: Expr = replace(load, index=simplify(substitute(load.index, places)))
    if guard is not None:
        value = Select(guard, value, Const(0, load.dtype), load.dtype)
    store = Store(operand.array, operand.cell(row, column), value)
    start = combine("+", combine("*", group.item[1], number(group.size[0])), group.item[0])
    items = group.size[0] * group.size[1]
    return Loop(e.name, "i32", start, number(operand.rows * operand.columns), number(items), (store,))


def _from_tile(operand: Operand, group: Group, loop: Loop) -> Load:
    """Read an element from the tile; the loop counts within its slice."""
    axis = group.axes[operand.axis]
    within: dict[str, Expr] = {
        loop.name: Var(loop.name, "i32"),
        axis.name: combine("-", Var(axis.name, "i32"), group.first[operand.axis]),
    }
    index = operand.cell(within[operand.across], within[operand.along])
    return replace(operand.load, buffer=operand.array, index=index)


def stage_contraction(form: Form, size: int, jam: int, depth: int) -> Form:
    """Stage a contraction: ``size`` by ``size`` items, ``jam`` by ``jam`` results each, slices of ``depth``.

    Raises:
        Declined: The body is no sum over one loop of operands that each depend on one axis.
    """
    taken = names(form)
    group = _group(form, (size, size), (jam, jam), taken)
    let, loop, rest = _contraction(form)
    body = inline_indices(loop.body)
    slice_ = Var(fresh(f"{loop.name}0", taken), "i32")
    operands = [_operand(load, group, loop, depth, taken) for load in dict.fromkeys(loads(body))]
    fills = [_fill(o, group, loop, slice_, depth, taken) for o in operands]
    local = {o.load: _from_tile(o, group, loop) for o in operands}
    inner = tuple(
        map_expressions(s, lambda e: transform(e, lambda x: local.get(x, x) if isinstance(x, Load) else x))
        for s in body
    )
    tiled = tuple(
        Tiled(a.name, combine("+", group.first[d], group.item[d]), group.jam[d], 1, group.size[d])
        for d, a in enumerate(group.axes)
    )
    guard = _in_space(group)
    if guard is not None and let.value is not None and any(isinstance(e, Load) for e in walk(let.value)):
        let = replace(let, value=Select(guard, let.value, Const(0.0, let.dtype), let.dtype))
    step = Loop(loop.name, "i32", ZERO, number(depth), ONE, inner, unroll=depth)
    expansion = Expansion(tiled, (let, step, *rest), taken)
    steps = expansion.body((step,))
    sliced = (*fills, Barrier(), *steps, Barrier())
    outer = Loop(slice_.name, "i32", loop.start, loop.stop, number(depth), sliced)
    stores = _guarded_copies(expansion, rest, guard, tiled)
    return _frame(form, group, (*(o.tile for o in operands), *expansion.body((let,)), outer, *stores))


def _in_space(group: Group) -> Expr | None:
    """Give the condition under which a result lies in the space; None where all do."""
    return conjunction(
        Op("<", (Var(a.name, "i32"), extent(a)), "i32")
        for d, a in enumerate(group.axes)
        if not _fits(a, group.span[d])
    )


def _guarded_copies(
    expansion: Expansion, rest: tuple[Stmt, ...], guard: Expr | None, tiled: tuple[Tiled, ...]
) -> tuple[Stmt, ...]:
    """Store each result that lies in the space."""
    out: list[Stmt] = []
    for at in expansion.coordinates(frozenset(t.name for t in tiled)):
        stmts = expansion.one(rest, at)
        out += stmts if guard is None else [If(expansion.scalar(guard, at), stmts)]
    return tuple(out)


def _contraction(form: Form) -> tuple[Let, Loop, tuple[Stmt, ...]]:
    match form.body:
        case (Let() as let, Loop() as loop, *rest) if rest:
            pass
        case _:
            raise Declined("it is no single sum")
    sums = [s for s in loop.body if isinstance(s, Accumulate)]
    if len(sums) != 1 or sums[0].op != "+" or sums[0].name != let.name or constant(loop.step) != 1:
        raise Declined("it is no single sum")
    product = sums[0].value
    if not (isinstance(product, Op) and product.op == "*"):
        raise Declined("it is no sum of products")
    return let, loop, tuple(rest)


def _unit(load: Load, loop: str, axis: str) -> tuple[str, str]:
    """Name the one of loop and axis that walks consecutive elements, then the other."""
    for a, b in ((axis, loop), (loop, axis)):
        c = coefficient(load.index, a)
        if c is not None and constant(c) == 1:
            return a, b
    raise Declined(f"nothing walks consecutive elements of {load.buffer}")


def _fits(axis: Axis, span: int) -> bool:
    known = None if axis.extent is None else constant(axis.extent)
    return known is not None and known % span == 0


def _even(loop: Loop, depth: int) -> bool:
    """Tell whether slices of this depth fill the loop with nothing left over."""
    trip = constant(combine("-", loop.stop, loop.start))
    return trip is not None and trip % depth == 0


def stage_transposition(form: Form, size: int, rows: int) -> Form:
    """Read a tile along one axis and write it along the other; ``size`` by ``rows`` items for each tile.

    Raises:
        Declined: The body does not move one element from a row to a column.
    """
    taken = names(form)
    body = inline_indices(form.body)
    match body:
        case (Store(value=Load() as load) as store,):
            pass
        case _:
            raise Declined("it does more than move an element")
    group = _group(form, (size, rows), (1, size // rows), taken)
    x, y = group.axes
    read, write = (_walks(i, x.name, y.name) for i in (load.index, store.index))
    if read == write:
        raise Declined("it reads and writes along the same axis")
    r, w = group.of(read), group.of(write)
    span = (size, size)
    group = replace(group, jam=(1, size // rows))
    array = fresh("tile", taken)
    k = Var(fresh("k", taken), "i32")
    line = combine("+", group.item[1], k)
    steps: list[Stmt] = []
    for unit, other, is_read in ((r, w, True), (w, r, False)):
        place: dict[str, Expr] = {
            group.axes[unit].name: combine("+", group.first[unit], group.item[0]),
            group.axes[other].name: combine("+", group.first[other], line),
        }
        row, column = (line, group.item[0]) if is_read else (group.item[0], line)
        cell = combine("+", combine("*", row, number(size + 1)), column)
        index = simplify(substitute(load.index if is_read else store.index, place))
        move: Stmt = (
            Store(array, cell, Load(load.buffer, index, load.dtype))
            if is_read
            else Store(store.buffer, index, Load(array, cell, load.dtype))
        )
        guard = conjunction(
            Op("<", (place[a.name], extent(a)), "i32")
            for d, a in enumerate(group.axes)
            if not _fits(a, span[d])
        )
        inner = (move,) if guard is None else (If(guard, (move,)),)
        steps.append(Loop(k.name, "i32", ZERO, number(size), number(rows), inner, unroll=size // rows))
    tile = Array(array, load.dtype, size * (size + 1), "local")
    framed = _frame(form, group, (tile, steps[0], Barrier(), steps[1]))
    return replace(framed, axes=tuple(replace(a, block=size) for a in framed.axes))


def _walks(index: Expr, x: str, y: str) -> str:
    for name in (x, y):
        c = coefficient(index, name)
        if c is not None and constant(c) == 1:
            return name
    raise Declined("neither axis walks consecutive elements")
