"""What a form is like: its family, how it walks its operands, how much it computes for what it moves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mb_targets.form.affine import coefficient, constant, depends
from mb_targets.form.dependence import inline_indices
from mb_targets.form.functions import MATH
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
    Load,
    Loop,
    Op,
    Select,
    Stmt,
    Store,
    Var,
)
from mb_targets.form.traverse import children, expressions, statements, walk

_MATH_COST, _DIVISION_COST = 16, 4
_FEW = 16
_UNKNOWN_TRIPS = 64


@dataclass(frozen=True, slots=True)
class Work:
    """Operations of one launch.

    Attributes:
        operations: All, functions weighted by what they cost.
        math: The share that functions such as ``exp`` have.
    """

    operations: float
    math: float


@dataclass(frozen=True, slots=True)
class Access:
    """One place where a buffer is read or written, with the loops around it, outermost first."""

    buffer: str
    index: Expr
    loops: tuple[Loop, ...]
    stored: bool


def accesses(form: Form) -> list[Access]:
    """List the places where a form reads and writes, indices written over axes and loops."""
    return list(_accesses(inline_indices(form.body), ()))


def _accesses(body: tuple[Stmt, ...], loops: tuple[Loop, ...]) -> Iterator[Access]:
    for s in body:
        for e in (x for top in expressions(s) for x in walk(top)):
            if isinstance(e, Load):
                yield Access(e.buffer, e.index, loops, False)
        match s:
            case Store(buffer=b, index=i):
                yield Access(b, i, loops, True)
            case Loop(body=b):
                yield from _accesses(b, (*loops, s))
            case If(then=t, otherwise=o):
                yield from _accesses(t, loops)
                yield from _accesses(o, loops)


def walks(access: Access, axes: tuple[Axis, ...]) -> str:
    """Say how the innermost loop around an access, or else the first axis, walks its buffer."""
    if access.loops:
        name = access.loops[-1].name
    elif axes:
        name = axes[0].name
    else:
        return "broadcast"
    by = coefficient(access.index, name)
    if by is None:
        return "scatter" if access.stored else "gather"
    step = constant(by)
    if step == 0:
        return "broadcast"
    return "unit" if step in {1, -1} else "strided"


def family(form: Form) -> str:
    """Name the family of computations that a form belongs to."""
    places = accesses(form)
    body = inline_indices(form.body)
    if any(isinstance(e, Load) for p in places for e in walk(p.index)):
        return "gather"
    loops = [s for s in statements(body) if isinstance(s, Loop)]
    folds = [loop for loop in loops if any(True for _ in _folds(loop))]
    if any(_carries(loop) for loop in loops):
        return "scan"
    if _is_stencil(form, places, loops):
        return "stencil"
    if folds:
        products = [s for loop in folds for s in _folds(loop) if _is_product(s.value)]
        outside = {s.name for s in body if isinstance(s, Loop)}
        storing = [loop for loop in loops if any(isinstance(s, Store) for s in statements(loop.body))]
        if products and not any(loop.name in outside for loop in storing):
            return "contraction"
        return "row statistics" if storing else "reduction"
    return "transpose" if _is_transpose(places, form.axes) else "map"


def _folds(loop: Loop) -> Iterator[Accumulate]:
    """Give what a loop folds into a variable from outside it."""
    own = {s.name for s in statements(loop.body) if isinstance(s, Let)}
    return (s for s in statements(loop.body) if isinstance(s, Accumulate) and s.name not in own)


def _carries(loop: Loop) -> bool:
    """Tell whether a loop stores a running fold."""
    own = {s.name for s in statements(loop.body) if isinstance(s, Let)}
    running = {
        s.name for s in statements(loop.body) if isinstance(s, Accumulate | Assign) and s.name not in own
    }
    return any(
        depends(s.value, {n}) and depends(s.index, {loop.name})
        for s in loop.body
        if isinstance(s, Store)
        for n in running
    )


def _is_product(e: Expr) -> bool:
    e = e.value if isinstance(e, Cast) else e
    if not (isinstance(e, Op) and e.op == "*"):
        return False
    left, right = ({x.buffer for x in walk(a) if isinstance(x, Load)} for a in e.args)
    return bool(left and right and left != right)


def _is_stencil(form: Form, places: list[Access], loops: list[Loop]) -> bool:
    """Tell whether neighbours of an element are combined: few iterations that move as an axis does."""
    few = {
        loop.name
        for loop in loops
        if (a := constant(loop.start)) is not None
        and (b := constant(loop.stop)) is not None
        and b - a <= _FEW
    }
    names = [a.name for a in form.axes]
    for p in places:
        for axis in names:
            step = coefficient(p.index, axis)
            if step is None or constant(step) == 0 or p.stored:
                continue
            if any(coefficient(p.index, n) == step for n in few):
                return True
    return _neighbours(places, names)


def _neighbours(places: list[Access], axes: list[str]) -> bool:
    by_buffer: dict[str, set[Expr]] = {}
    for p in places:
        if not p.stored and not p.loops and any(depends(p.index, {a}) for a in axes):
            by_buffer.setdefault(p.buffer, set()).add(p.index)
    return any(len(indices) > 2 for indices in by_buffer.values())


def _is_transpose(places: list[Access], axes: tuple[Axis, ...]) -> bool:
    """Tell whether elements only move, and reading and writing walk along different axes."""
    if len(axes) < 2:
        return False
    read = {a.name for a in axes for p in places if not p.stored and _unit(p, a.name)}
    written = {a.name for a in axes for p in places if p.stored and _unit(p, a.name)}
    return bool(read and written and not read & written)


def _unit(p: Access, name: str) -> bool:
    by = coefficient(p.index, name)
    return by is not None and constant(by) == 1


def work(form: Form, items: float, scalars: Mapping[str, float]) -> Work:
    """Count the operations of a launch of ``items`` items or groups at these values of the scalars."""
    total, functions = _count(form.body, dict(scalars))
    return Work(total * items, functions / total if total else 0.0)


def _count(body: tuple[Stmt, ...], names: dict[str, float]) -> tuple[float, float]:
    total = functions = 0.0
    for s in body:
        times = 1.0
        inner: tuple[Stmt, ...] = ()
        if isinstance(s, Loop):
            times = _trips(s, names)
            inner = s.body
            begin = number(s.start, names)
            names = {**names, s.name: begin} if begin is not None else names
        elif isinstance(s, If):
            inner = (*s.then, *s.otherwise)
        more, more_functions = _count(inner, names)
        own = [_cost(e) for top in _values(s) for e in _computed(top)]
        accumulated = isinstance(s, Accumulate)
        total += times * more + sum(c for c, _ in own) + accumulated
        functions += times * more_functions + sum(c for c, is_function in own if is_function)
    return total, functions


def _values(s: Stmt) -> Iterator[Expr]:
    """Give what a statement computes, but not where it puts it nor how often."""
    match s:
        case Store(value=v):
            yield v
        case Loop():
            pass
        case _:
            yield from expressions(s)


def _computed(e: Expr) -> Iterator[Expr]:
    """Visit an expression, but no subscript."""
    yield e
    if not isinstance(e, Load):
        for c in children(e):
            yield from _computed(c)


def _cost(e: Expr) -> tuple[int, bool]:
    if isinstance(e, Call):
        return (_MATH_COST, True) if e.function in MATH else (1, False)
    if isinstance(e, Op) and e.op in {"+", "-", "*", "/", "neg"}:
        return (_DIVISION_COST if e.op == "/" else 1), False
    return 0, False


def _trips(loop: Loop, names: Mapping[str, float]) -> float:
    start, stop, step = (number(e, names) for e in (loop.start, loop.stop, loop.step))
    if start is None or stop is None or not step:
        return _UNKNOWN_TRIPS
    return max(math.ceil((stop - start) / step), 0)


def number(e: Expr, names: Mapping[str, float]) -> float | None:
    """Work an expression out; unknown ids and variables count as 0, loads and functions as unknown."""
    match e:
        case Const(value=v):
            return v
        case Var(name=n):
            return names.get(n, 0.0)
        case Cast(value=v):
            return number(v, names)
        case Call(function="min" | "max" as f, args=args):
            values = [number(a, names) for a in args]
            known = [v for v in values if v is not None]
            return None if len(known) < len(values) else (min if f == "min" else max)(known)
        case Op(op=op, args=(a, b)):
            x, y = number(a, names), number(b, names)
            return None if x is None or y is None else _compute(op, x, y)
        case Select(yes=y):
            return number(y, names)
        case _:
            return None


def _compute(op: str, x: float, y: float) -> float | None:
    match op:
        case "+":
            return x + y
        case "-":
            return x - y
        case "*":
            return x * y
        case "/" if y:
            return x // y
        case "%" if y:
            return x % y
        case "<<":
            return x * 2**y
        case ">>":
            return x // 2**y
        case _:
            return None
