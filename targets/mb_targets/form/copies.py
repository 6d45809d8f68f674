"""Local memory that only holds copies: what an item reads there is what another item had loaded.

A tile that a work group loads, and reads after a barrier, is replaced by the loads themselves. What is left
of a tiled matrix product is the product, item by item, and of a staged transposition the transposition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mb_targets.form.affine import depends, equal, polynomial, rebuilt, simplify
from mb_targets.form.conversions import arithmetic, as_global, convert
from mb_targets.form.dependence import inline_indices
from mb_targets.form.dialect import GLOBAL, GROUP, LOCAL, Unliftable
from mb_targets.form.nest import (
    Accumulate,
    Array,
    Assign,
    Barrier,
    Const,
    Expr,
    Let,
    Load,
    Loop,
    Stmt,
    Store,
    Var,
)
from mb_targets.form.traverse import expressions, map_expressions, statements, transform, walk

Body = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """What the items of a group stored to an array.

    Attributes:
        value: What each stored, over its ids.
        pitch: Distance of the elements of items that are neighbours in the slower dimension; 0 where the
            group has one dimension.
        order: The dimensions of the ids in the index, the fastest first.
    """

    value: Expr
    pitch: int
    order: tuple[int, ...]


def without_copies(body: Body, sizes: Sequence[int | None]) -> Body | None:
    """Replace reads of tiles by loads; None where some array is no plain copy.

    Args:
        body: Statements over ids.
        sizes: Items of a group by dimension, None where not known.
    """
    body = inline_indices(body)
    arrays = {s.name for s in statements(body) if isinstance(s, Array)}
    if not arrays or any(s is None for s in sizes):
        return None
    written = {s.buffer for s in statements(body) if isinstance(s, Store)} - arrays
    own = {s.name for s in statements(body) if isinstance(s, Assign | Accumulate | Let)}
    finder = _Finder(arrays, written, own, [s or 1 for s in sizes])
    try:
        found = finder.block(body, False)
    except Unliftable:
        return None
    left = {s.buffer for s in statements(found) if isinstance(s, Store)}
    left |= {x.buffer for s in found for x in _loads(s)}
    if finder.seen != arrays or left & arrays:
        return None
    for swap in (False, True):
        items = _by_items(found, [s or 1 for s in sizes], swap)
        if not _mentions_groups(items):
            return items
    return None


class _Finder:
    """Walks blocks, and replaces reads of arrays by what was stored there."""

    def __init__(self, arrays: set[str], written: set[str], own: set[str], sizes: list[int]) -> None:
        self._arrays = arrays
        self._own = own
        self._written = written
        self._sizes = sizes
        self.seen: set[str] = set()

    def block(self, body: Body, repeated: bool) -> Body:
        """Replace in one block, where a tile is stored, then read after a barrier, all at this level."""
        waiting: dict[str, Copy] = {}
        ready: dict[str, Copy] = {}
        out: list[Stmt] = []
        read_since = False
        for s in body:
            match s:
                case Array():
                    continue
                case Barrier():
                    ready |= waiting
                    waiting, read_since = {}, False
                    continue
                case Store(buffer=b) if b in self._arrays:
                    if read_since or b in self.seen:
                        raise Unliftable("stores to a tile that may still be read")
                    waiting[b] = self._copy(s)
                    self.seen.add(b)
                    continue
                case _:
                    pass
            reads = {x.buffer for x in _loads(s)} & self._arrays
            inner = [x for x in statements((s,)) if isinstance(x, Barrier)]
            if inner:
                if reads & set(ready) or not isinstance(s, Loop):
                    raise Unliftable("reads a tile across barriers")
                if any(
                    isinstance(x, Var) and x.name.startswith("@") for e in expressions(s) for x in walk(e)
                ):
                    raise Unliftable("has a barrier in a loop that work items run differently often")
                out.append(replace(s, body=self.block(s.body, True)))
                continue
            if reads - set(ready):
                raise Unliftable("reads a tile before a barrier")
            read_since = read_since or bool(reads)
            out.append(self._replaced(s, ready))
        if repeated and read_since:
            raise Unliftable("has no barrier after the last read of a tile")
        return tuple(out)

    def _copy(self, s: Store) -> Copy:
        value = s.value
        if any(x.buffer in self._written | self._arrays for x in walk(value) if isinstance(x, Load)):
            raise Unliftable("changes what a tile was loaded from")
        if depends(value, self._own):
            raise Unliftable("stores a value of each work item's own to a tile")
        terms = dict(polynomial(s.index).terms)
        used = [k for k in range(3) if depends(value, {f"{LOCAL}{k}", f"{GLOBAL}{k}"}) and self._sizes[k] > 1]
        steps = {k: terms.pop((f"{LOCAL}{k}",), 0) for k in range(3)}
        order = sorted((k for k in steps if steps[k]), key=lambda k: steps[k])
        if terms or not order or steps[order[0]] != 1 or len(order) > 2 or not set(used) <= set(order):
            raise Unliftable("stores to a tile at another place than the item's own")
        pitch = steps[order[1]] if len(order) == 2 else 0
        if pitch and pitch < self._sizes[order[0]]:
            raise Unliftable("stores to a tile at overlapping places")
        return Copy(value, pitch, tuple(order))

    def _replaced(self, s: Stmt, ready: Mapping[str, Copy]) -> Stmt:
        def one(x: Expr) -> Expr:
            return self._loaded(x, ready[x.buffer]) if isinstance(x, Load) and x.buffer in ready else x

        return map_expressions(s, lambda e: transform(e, one))

    def _loaded(self, load: Load, copy: Copy) -> Expr:
        """Give what the item whose place is read had stored."""
        places = dict(zip(copy.order, _places(load.index, copy.pitch), strict=True))
        values: dict[str, Expr] = {}
        for k, place in places.items():
            if equal(place, Var(f"{LOCAL}{k}", "i32")):
                continue
            place = convert(place, "i32")
            first = arithmetic("*", Var(f"{GROUP}{k}", "i32"), Const(self._sizes[k], "i32"))
            values[f"{LOCAL}{k}"] = place
            values[f"{GLOBAL}{k}"] = arithmetic("+", first, place)
        return _substituted(copy.value, values)


def _loads(s: Stmt) -> Iterator[Load]:
    for x in statements((s,)):
        for top in expressions(x):
            for e in walk(top):
                if isinstance(e, Load):
                    yield e


def _substituted(e: Expr, values: Mapping[str, Expr]) -> Expr:
    return transform(
        e, lambda x: convert(values[x.name], x.dtype) if isinstance(x, Var) and x.name in values else x
    )


def _places(index: Expr, pitch: int) -> tuple[Expr, ...]:
    """Part an index into the place along the fastest dimension and the one along the next."""
    if not pitch:
        return (index,)
    p = polynomial(index)
    slow = {m: c // pitch for m, c in p.terms.items() if m and c % pitch == 0}
    fast = {m: c for m, c in p.terms.items() if m and c % pitch}
    offset = p.terms.get((), 0)
    slow[()], fast[()] = offset // pitch, offset % pitch
    return rebuilt(fast, p.atoms), rebuilt(slow, p.atoms)


def _by_items(body: Body, sizes: list[int], swap: bool) -> Body:
    """Write ids of and within groups as global ids; ``swap`` lets the items of a square change places."""
    if swap and sizes[0] != sizes[1]:
        return body
    places: dict[str, Expr] = {
        f"{LOCAL}0": Var(f"{LOCAL}1", "i32"),
        f"{LOCAL}1": Var(f"{LOCAL}0", "i32"),
        **{
            f"{GLOBAL}{k}": arithmetic(
                "+",
                arithmetic("*", Var(f"{GROUP}{k}", "i32"), Const(sizes[k], "i32")),
                Var(f"{LOCAL}{1 - k}", "i32"),
            )
            for k in (0, 1)
        },
    }

    def one(e: Expr) -> Expr:
        e = simplify(_substituted(e, places)) if swap else e
        return transform(e, lambda x: as_global(x, sizes))

    return tuple(map_expressions(s, one) for s in body)


def _mentions_groups(body: Body) -> bool:
    names = {f"{kind}{k}" for kind in (LOCAL, GROUP) for k in range(3)}
    return any(depends(e, names) for s in statements(body) for e in expressions(s))
