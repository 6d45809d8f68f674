"""Compute several iterations at once: unroll and jam, with lanes.

The one transformation under register blocking, vectorization and several accumulators. Given a body and the
dimensions to take ``jam * lanes`` values of together, it makes the body that computes them all: each variable
gets one copy for every jammed iteration that it depends on, and becomes a vector where it depends on the
dimension with lanes. What depends on none of the dimensions is computed once.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mb_targets.form.affine import coefficient, constant, simplify
from mb_targets.form.dependence import Declined, dependences
from mb_targets.form.nest import (
    Accumulate,
    Assign,
    Call,
    Cast,
    Const,
    Expr,
    If,
    Lane,
    Let,
    Load,
    Loop,
    Op,
    Pack,
    Select,
    Stmt,
    Store,
    Var,
)
from mb_targets.form.traverse import loads, rebuild, walk
from mb_targets.model import ITEM_BYTES, Dtype

COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
SIGNED: Mapping[int, Dtype] = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
"""The integer of so many bytes, which is what a comparison of vectors gives and a vector select wants."""
IDENTITY: Mapping[str, float] = {"+": 0, "*": 1, "|": 0, "^": 0}

Coordinate = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tiled:
    """A dimension to take several values of: an axis or a loop variable.

    Attributes:
        name: The variable.
        start: The first value of the tile, in whose terms the result is written.
        jam: Copies.
        lanes: Lanes of each copy; copy ``k`` begins at ``start + k * lanes * stride``.
        stride: Values between neighbouring copies, above 1 where other items take those between.
    """

    name: str
    start: Expr
    jam: int
    lanes: int
    stride: int = 1

    @property
    def block(self) -> int:
        """Values taken together."""
        return self.jam * self.lanes


class Expansion:
    """One application of the transformation.

    Args:
        tiled: The dimensions; at most one has lanes.
        body: The body, used to find what depends on what.
        taken: Names that new variables must not have.
        outer: Variables declared outside the body that get copies too (accumulators of a loop).
    """

    def __init__(
        self,
        tiled: tuple[Tiled, ...],
        body: tuple[Stmt, ...],
        taken: set[str],
        outer: Mapping[str, frozenset[str]] | None = None,
    ):
        self._tiled = tiled
        self._deps = dependences(body, [t.name for t in tiled])
        self._deps.update(outer or {})
        self._taken = taken
        self._names: dict[tuple[str, Coordinate], str] = {}
        laned = [t for t in tiled if t.lanes > 1]
        if len(laned) > 1:
            raise Declined("only one dimension can have lanes")
        self._laned = laned[0] if laned else None
        self.lanes = self._laned.lanes if self._laned else 1

    def of(self, e: Expr) -> frozenset[str]:
        """Find the tiled dimensions that an expression depends on."""
        return frozenset().union(
            *(self._deps.get(x.name, frozenset()) for x in walk(e) if isinstance(x, Var))
        )

    def coordinates(self, deps: frozenset[str]) -> list[Coordinate]:
        """List the copies that something with these dependences has."""
        return list(itertools.product(*(range(t.jam if t.name in deps else 1) for t in self._tiled)))

    def copy_name(self, name: str, at: Coordinate) -> str:
        """Name a variable's copy; the name itself where there is but one."""
        deps = self._deps.get(name, frozenset())
        key = tuple(k if t.name in deps else 0 for k, t in zip(at, self._tiled, strict=True))
        jammed = [k for k, t in zip(key, self._tiled, strict=True) if t.name in deps and t.jam > 1]
        if not jammed:
            return name
        if (name, key) not in self._names:
            new = "_".join([name, *map(str, jammed)])
            while new in self._taken:
                new += "_"
            self._taken.add(new)
            self._names[name, key] = new
        return self._names[name, key]

    def in_lanes(self, name: str) -> bool:
        """Tell whether a variable becomes a vector."""
        return self._laned is not None and self._laned.name in self._deps.get(name, frozenset())

    def _starts(self, at: Coordinate, lane: int = 0) -> dict[str, Expr]:
        starts: dict[str, Expr] = {}
        for t, k in zip(self._tiled, at, strict=True):
            shift = k * t.lanes * t.stride + (lane if t is self._laned else 0)
            starts[t.name] = Op("+", (t.start, Const(shift, "i32")), t.start.dtype) if shift else t.start
        return starts

    def scalar(self, e: Expr, at: Coordinate, lane: int = 0) -> Expr:
        """Write an expression for one iteration of the tile."""
        starts = self._starts(at, lane)

        def visit(x: Expr) -> Expr:
            if isinstance(x, Var):
                if x.name in starts:
                    return starts[x.name]
                copy = Var(self.copy_name(x.name, at), x.dtype, x.lanes)
                if self.in_lanes(x.name):
                    return Lane(replace(copy, lanes=self.lanes), lane, x.dtype)
                return copy
            return rebuild(x, visit)

        return simplify(visit(e))

    def value(self, e: Expr, at: Coordinate) -> Expr:
        """Write an expression for one copy: a vector where it depends on the lanes."""
        laned = self._laned
        if laned is None or laned.name not in self.of(e):
            return self.scalar(e, at)
        match e:
            case Var(name=n) if n == laned.name:
                first = self._starts(at)[n]
                steps = Pack(tuple(Const(k, e.dtype) for k in range(self.lanes)), e.dtype)
                return Op("+", (Cast(first, e.dtype, self.lanes), steps), e.dtype, self.lanes)
            case Var(name=n):
                return Var(self.copy_name(n, at), e.dtype, self.lanes)
            case Load(buffer=b, index=i):
                c = coefficient(i, laned.name)
                if c is not None and constant(c) == 1 and not self._varies_otherwise(i):
                    return Load(b, self.scalar(i, at), e.dtype, self.lanes)
                return Pack(tuple(self.scalar(e, at, k) for k in range(self.lanes)), e.dtype)
            case Select():
                return self._select(e, at)
            case Op(op=op, args=args):
                values = tuple(self.value(a, at) for a in args)
                dtype = self._truth_dtype(op, values, e.dtype)
                return Op(op, values, dtype, self.lanes)
            case Call(args=args):
                return replace(e, args=tuple(self._widen(self.value(a, at)) for a in args), lanes=self.lanes)
            case Cast(value=v):
                return Cast(self.value(v, at), e.dtype, self.lanes)
            case _:
                raise Declined("it already works on vectors")

    def _varies_otherwise(self, index: Expr) -> bool:
        """Tell whether a subscript also depends on the lanes through another variable."""
        assert self._laned is not None
        return any(
            isinstance(x, Var) and x.name != self._laned.name and self.in_lanes(x.name) for x in walk(index)
        )

    def _widen(self, e: Expr) -> Expr:
        return e if e.lanes > 1 else Cast(e, e.dtype, self.lanes)

    def _truth_dtype(self, op: str, values: tuple[Expr, ...], dtype: Dtype) -> Dtype:
        """A vector comparison gives integers as wide as what it compares."""
        if op in COMPARISONS or op in {"&&", "||", "!"}:
            widest = max(ITEM_BYTES[v.dtype] for v in values if v.lanes > 1)
            return SIGNED[widest]
        return dtype

    def _select(self, e: Select, at: Coordinate) -> Expr:
        """Both values are computed in all lanes, so a check of bounds must not be what keeps loads legal."""
        if _is_bounds_check(e.condition) and any(isinstance(x, Load) for x in (*walk(e.yes), *walk(e.no))):
            raise Declined("a bounds check differs from item to item")
        condition = self.value(e.condition, at)
        yes, no = self._widen(self.value(e.yes, at)), self._widen(self.value(e.no, at))
        if condition.lanes > 1 and ITEM_BYTES[condition.dtype] != ITEM_BYTES[e.dtype]:
            condition = Cast(condition, SIGNED[ITEM_BYTES[e.dtype]], self.lanes)
        return Select(condition, yes, no, e.dtype, self.lanes)

    def body(self, stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Expand statements."""
        return tuple(x for s in stmts for y in self._share(s) for x in self._statement(y))

    def one(self, stmts: tuple[Stmt, ...], at: Coordinate) -> tuple[Stmt, ...]:
        """Write straight-line statements for one copy alone.

        Raises:
            Declined: There is a loop or a branch among them.
        """
        out: list[Stmt] = []
        for s in stmts:
            match s:
                case Let(name=n, value=v):
                    value = None if v is None else self.scalar(v, at)
                    out.append(replace(s, name=self.copy_name(n, at), value=value))
                case Assign(name=n, value=v) | Accumulate(name=n, value=v):
                    out.append(replace(s, name=self.copy_name(n, at), value=self.scalar(v, at)))
                case Store(index=i, value=v):
                    out.append(replace(s, index=self.scalar(i, at), value=self.scalar(v, at)))
                case _:
                    raise Declined("the results are not simply stored")
        return tuple(out)

    def _share(self, s: Stmt) -> list[Stmt]:
        """Take out of a statement the loads that serve several of its copies."""
        match s:
            case Accumulate(name=n):
                deps = self._deps.get(n, frozenset())
            case Store():
                deps = self.of(s.index) | self.of(s.value)
            case _:
                return [s]
        copies = len(self.coordinates(deps))
        shared: list[Stmt] = []

        def one(e: Expr) -> Expr:
            if not isinstance(e, Load) or len(self.coordinates(self.of(e))) == copies:
                return rebuild(e, one)
            name = f"{e.buffer}_item"
            while name in self._taken:
                name += "_"
            self._taken.add(name)
            self._deps[name] = self.of(e)
            shared.append(Let(name, e.dtype, e, e.lanes))
            return Var(name, e.dtype, e.lanes)

        if copies > 1:
            s = replace(s, value=one(s.value))
        return [*shared, s]

    def _statement(self, s: Stmt) -> list[Stmt]:
        match s:
            case Let(name=n, value=v):
                lanes = self.lanes if self.in_lanes(n) else s.lanes
                return [
                    Let(self.copy_name(n, at), s.dtype, None if v is None else self.value(v, at), lanes)
                    for at in self.coordinates(self._deps.get(n, frozenset()))
                ]
            case Assign(name=n, value=v):
                return [
                    Assign(self.copy_name(n, at), self.value(v, at))
                    for at in self.coordinates(self._deps.get(n, frozenset()))
                ]
            case Accumulate(name=n, op=op, value=v):
                deps = self._deps.get(n, frozenset())
                if not self.of(v) <= deps:
                    raise Declined(f"{n} would be accumulated by several items at once")
                return [
                    Accumulate(self.copy_name(n, at), op, self.value(v, at)) for at in self.coordinates(deps)
                ]
            case Store():
                return self._store(s)
            case Loop(start=a, stop=b, step=c):
                if self.of(a) | self.of(b) | self.of(c):
                    raise Declined(f"the bounds of loop {s.name} differ from item to item")
                return [replace(s, body=self.body(s.body))]
            case If(condition=c, then=t, otherwise=o):
                if not self.of(c):
                    return [If(c, self.body(t), self.body(o))]
                if _is_bounds_check(c) and any(loads((*t, *o))):
                    raise Declined("a bounds check differs from item to item")
                return [x for y in _as_selects(c, t, o) for x in self._statement(y)]
            case _:
                raise Declined("it already uses arrays or barriers")

    def _store(self, s: Store) -> list[Stmt]:
        deps = self.of(s.index) | self.of(s.value)
        if not self.of(s.value) <= self.of(s.index):
            raise Declined(f"several items write the same element of {s.buffer}")
        out: list[Stmt] = []
        for at in self.coordinates(deps):
            laned = self._laned
            if laned is None or laned.name not in self.of(s.index):
                out.append(Store(s.buffer, self.scalar(s.index, at), self.scalar(s.value, at)))
                continue
            c = coefficient(s.index, laned.name)
            if c is not None and constant(c) == 1 and not self._varies_otherwise(s.index):
                out.append(Store(s.buffer, self.scalar(s.index, at), self._widen(self.value(s.value, at))))
            else:
                out += [
                    Store(s.buffer, self.scalar(s.index, at, k), self.scalar(s.value, at, k))
                    for k in range(self.lanes)
                ]
        return out


def _is_bounds_check(condition: Expr) -> bool:
    """Tell whether a condition is about where an item is, not about what it read."""
    return not any(isinstance(e, Load) or e.dtype[0] == "f" for e in walk(condition))


def _as_selects(condition: Expr, then: tuple[Stmt, ...], otherwise: tuple[Stmt, ...]) -> list[Stmt]:
    """Turn a conditional without stores or loops into unconditional statements that select."""
    out: list[Stmt] = []
    for taken, stmts in ((True, then), (False, otherwise)):
        inner: set[str] = set()
        for s in stmts:
            match s:
                case Let(name=n):
                    inner.add(n)
                    out.append(s)
                case Assign(name=n, value=v) if n in inner:
                    out.append(s)
                case Assign(name=n, value=v):
                    keep = Var(n, v.dtype)
                    out.append(
                        Assign(
                            n,
                            Select(condition, v, keep, v.dtype)
                            if taken
                            else Select(condition, keep, v, v.dtype),
                        )
                    )
                case Accumulate(name=n, op=op, value=v):
                    if op in IDENTITY:
                        none: Expr = Const(IDENTITY[op], v.dtype)
                    else:
                        none = Var(n, v.dtype)
                    out.append(
                        Accumulate(
                            n,
                            op,
                            Select(condition, v, none, v.dtype)
                            if taken
                            else Select(condition, none, v, v.dtype),
                        )
                    )
                case _:
                    raise Declined("a branch that differs from item to item does more than compute a value")
    return out
