"""Algebra on expressions: cheaper ways to compute the same value.

Each function gives the body changed, or raises Declined when there was nothing to change. Those that
round differently say so; verification decides whether the difference is within the bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from mb_targets.form.affine import depends, equal, substitute
from mb_targets.form.dependence import Declined
from mb_targets.form.dtypes import is_integer
from mb_targets.form.nest import (
    Accumulate,
    Assign,
    Call,
    Cast,
    Const,
    Expr,
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
from mb_targets.form.tile import fresh
from mb_targets.form.traverse import expressions, map_expressions, rebuild, statements, transform, walk
from mb_targets.model import Dtype

Body = tuple[Stmt, ...]

NATIVE = frozenset({"exp", "exp2", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "sqrt", "rsqrt"})
EXPENSIVE = frozenset(
    {"exp", "exp2", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "tanh", "pow", "powr", "erf",
     "erfc", "sqrt", "rsqrt", "sinh", "cosh", "atan", "native_exp", "native_log"}
)  # fmt: skip


def _changed(body: Body, f: Callable[[Expr], Expr], why_not: str) -> Body:
    new = tuple(map_expressions(s, lambda e: transform(e, f)) for s in body)
    if new == body:
        raise Declined(why_not)
    return new


def powers(body: Body) -> Body:
    """Write ``pow`` with a small whole exponent as products, and with a half as a root."""

    def one(e: Expr) -> Expr:
        match e:
            case Call(function="pow" | "pown" | "powr", args=(base, Const(value=v))) if v in {1, 2, 3, 4}:
                square = Op("*", (base, base), e.dtype)
                return {1: base, 2: square, 3: Op("*", (square, base), e.dtype),
                        4: Op("*", (square, square), e.dtype)}[int(v)]  # fmt: skip
            case Call(function="pow" | "powr", args=(base, Const(value=0.5))):
                return Call("sqrt", (base,), e.dtype)
            case _:
                return e

    return _changed(body, one, "there is no pow with a small constant exponent")


def tanh_by_exp(body: Body) -> Body:
    """Write ``1 + tanh(u)`` as ``2 / (1 + exp(-2u))`` and ``tanh(u)`` as ``1 - 2 / (1 + exp(2u))``.

    The first loses nothing where tanh nears -1, which the second would.
    """

    def sigmoid2(u: Expr, sign: float, dtype: Dtype) -> Expr:
        two_u = Op("*", (Const(sign * 2.0, dtype), u), dtype)
        one_plus = Op("+", (Const(1.0, dtype), Call("exp", (two_u,), dtype)), dtype)
        return Op("/", (Const(2.0, dtype), one_plus), dtype)

    def is_one(e: Expr) -> bool:
        return isinstance(e, Const) and e.value == 1

    def one(e: Expr) -> Expr:
        match e:
            case Op(op="+", args=(a, Call(function="tanh", args=(u,)))) if is_one(a):
                return sigmoid2(u, -1.0, e.dtype)
            case Op(op="+", args=(Call(function="tanh", args=(u,)), a)) if is_one(a):
                return sigmoid2(u, -1.0, e.dtype)
            case _:
                return e

    def rest(e: Expr) -> Expr:
        match e:
            case Call(function="tanh", args=(u,)):
                return Op("-", (Const(1.0, e.dtype), sigmoid2(u, 1.0, e.dtype)), e.dtype)
            case _:
                return e

    def top_down(e: Expr) -> Expr:  # the sum must be seen before the tanh inside it is rewritten
        e = one(e)
        return rest(rebuild(e, top_down))

    new = tuple(map_expressions(s, top_down) for s in body)
    if new == body:
        raise Declined("there is no tanh")
    return new


def native(body: Body) -> Body:
    """Use the device's fast approximations; rounds differently."""

    def one(e: Expr) -> Expr:
        if isinstance(e, Call) and e.function in NATIVE and e.dtype == "f32":
            return replace(e, function=f"native_{e.function}")
        return e

    return _changed(body, one, "there is no function with a native version")


def single_precision(body: Body) -> Body:
    """Compute in float where double came in only through an unsuffixed literal; rounds differently."""
    every = (x for s in statements(body) for e in expressions(s) for x in walk(e))
    if any(isinstance(x, Load | Var) and x.dtype == "f64" for x in every):
        raise Declined("it works on doubles")

    def one(e: Expr) -> Expr:
        match e:
            case Const(dtype="f64"):
                return Const(e.value, "f32")
            case Cast(value=v) if v.dtype == e.dtype:
                return v
            case Op() | Call() | Select() | Cast() if e.dtype == "f64":
                return one(replace(e, dtype="f32"))
            case _:
                return e

    return _changed(body, one, "there is no double literal")


def reciprocals(body: Body, taken: set[str]) -> Body:
    """Divide once before a loop and multiply inside it; rounds differently."""

    def divisors(loop: Loop, varying: set[str]) -> list[Expr]:
        found: list[Expr] = []
        for s in statements(loop.body):
            for top in expressions(s):
                for e in walk(top):
                    if (
                        isinstance(e, Op)
                        and e.op == "/"
                        and not is_integer(e.dtype)
                        and not isinstance(e.args[1], Const)
                        and not depends(e.args[1], varying)
                        and not any(equal(e.args[1], d) for d in found)
                    ):
                        found.append(e.args[1])
        return found  # fmt: skip

    def one_loop(loop: Loop) -> list[Stmt]:
        varying = assigned(loop.body) | {loop.name}
        before: list[Stmt] = []
        for d in divisors(loop, varying):
            name = fresh(f"inverse_{d.name}" if isinstance(d, Var) else "inverse", taken)
            before.append(Let(name, d.dtype, _inverse(d)))

            def one(e: Expr, d: Expr = d, name: str = name) -> Expr:
                if isinstance(e, Op) and e.op == "/" and equal(e.args[1], d):
                    return Op("*", (e.args[0], Var(name, d.dtype)), e.dtype)
                return e

            loop = replace(loop, body=tuple(map_expressions(s, partial(transform, f=one)) for s in loop.body))
        return [*before, loop]

    return _loops(body, one_loop, "there is no division by a loop invariant")


def _inverse(d: Expr) -> Expr:
    if isinstance(d, Call) and d.function == "sqrt":
        return Call("rsqrt", d.args, d.dtype)
    return Op("/", (Const(1.0, d.dtype), d), d.dtype)


def hoist(body: Body, taken: set[str]) -> Body:
    """Compute loop-invariant calls and divisions once before the loop; the same bits."""

    def one_loop(loop: Loop) -> list[Stmt]:
        varying = assigned(loop.body) | {loop.name} | stored(loop.body)
        before: list[Stmt] = []

        def costly(e: Expr) -> bool:
            return (isinstance(e, Call) and e.function in EXPENSIVE) or (
                isinstance(e, Op) and e.op in {"/", "%"}
            )

        def top_down(e: Expr) -> Expr:
            if not isinstance(e, Const | Var) and any(map(costly, walk(e))) and not depends(e, varying):
                for known in before:
                    if isinstance(known, Let) and known.value is not None and equal(known.value, e):
                        return Var(known.name, e.dtype)
                name = fresh(f"{loop.name}_invariant", taken)
                before.append(Let(name, e.dtype, e))
                return Var(name, e.dtype)
            return rebuild(e, top_down)

        loop = replace(loop, body=tuple(map_expressions(s, top_down) for s in loop.body))
        return [*before, loop]

    return _loops(body, one_loop, "there is no costly loop invariant")


def _loops(body: Body, one_loop: Callable[[Loop], list[Stmt]], why_not: str) -> Body:
    """Apply a rewrite to every loop, innermost first."""

    def visit(stmts: Body) -> Body:
        out: list[Stmt] = []
        for s in stmts:
            match s:
                case Loop(body=b):
                    out += one_loop(replace(s, body=visit(b)))
                case If(then=t, otherwise=o):
                    out.append(replace(s, then=visit(t), otherwise=visit(o)))
                case _:
                    out.append(s)
        return tuple(out)

    new = visit(body)
    if new == body:
        raise Declined(why_not)
    return new


def assigned(body: Body) -> set[str]:
    """Name the variables that a body declares or changes."""
    return {s.name for s in statements(body) if isinstance(s, Let | Assign | Accumulate | Loop)}


def stored(body: Body) -> set[str]:
    """Name the buffers that a body writes."""
    return {s.buffer for s in statements(body) if isinstance(s, Store)}


def reuse(body: Body) -> Body:
    """Keep a costly value of one loop in the output, for a later loop that would compute it again.

    The softmax pattern: the exponentials summed by one loop are what the next one divides.
    """

    def visit(stmts: Body) -> Body:
        for j, later in enumerate(stmts):
            if not (isinstance(later, Loop) and len(later.body) >= 1):
                continue
            for i, earlier in enumerate(stmts[:j]):
                if isinstance(earlier, Loop):
                    pair = _shared(earlier, later, stmts[i + 1 : j])
                    if pair is not None:
                        return (*stmts[:i], pair[0], *stmts[i + 1 : j], pair[1], *stmts[j + 1 :])
        out = [
            replace(s, body=visit(s.body)) if isinstance(s, Loop)
            else replace(s, then=visit(s.then), otherwise=visit(s.otherwise)) if isinstance(s, If)
            else s
            for s in stmts
        ]  # fmt: skip
        return tuple(out)

    new = visit(body)
    if new == body:
        raise Declined("no later loop computes a costly value again")
    return new


def _shared(earlier: Loop, later: Loop, between: Body) -> tuple[Loop, Loop] | None:
    same_range = all(
        equal(a, b)
        for a, b in ((earlier.start, later.start), (earlier.stop, later.stop), (earlier.step, later.step))
    )
    first, second = flatten_lets(earlier.body), flatten_lets(later.body)
    stores = [s for s in second if isinstance(s, Store)]
    if not same_range or len(stores) != 1 or _reads(earlier.body + between, stores[0].buffer):
        return None
    store = stores[0]
    back = {earlier.name: Var(later.name, later.dtype)}
    changing = assigned(earlier.body) | assigned(between) | stored(between) | {store.buffer}
    for e in _costly(first):
        again = substitute(e, back)
        if depends(e, changing) or not any(equal(x, again) for x in walk(store.value)):
            continue
        kept = Var(f"kept_{store.buffer}", e.dtype)
        index = substitute(store.index, {later.name: Var(earlier.name, earlier.dtype)})
        body = (Let(kept.name, e.dtype, e), *_replaced(first, e, kept), Store(store.buffer, index, kept))
        load = Load(store.buffer, store.index, e.dtype)
        return replace(earlier, body=body), replace(later, body=_replaced(second, again, load))
    return None


def _costly(body: Body) -> list[Call]:
    return [
        e
        for s in body
        for top in expressions(s)
        for e in walk(top)
        if isinstance(e, Call) and e.function in EXPENSIVE
    ]


def _replaced(body: Body, old: Expr, new: Expr) -> Body:
    return tuple(
        map_expressions(s, lambda e: transform(e, lambda x: new if equal(x, old) else x)) for s in body
    )


def _reads(body: Body, buffer: str) -> bool:
    return any(depends(e, (buffer,)) for s in statements(body) for e in expressions(s))


def flatten_lets(body: Body) -> Body:
    """Substitute variables that are set once, so that equal computations look equal."""
    changed = {s.name for s in statements(body) if isinstance(s, Assign | Accumulate)}
    known: dict[str, Expr] = {}
    out: list[Stmt] = []
    for s in body:
        s = map_expressions(
            s, lambda e: transform(e, lambda x: known.get(x.name, x) if isinstance(x, Var) else x)
        )
        if (
            isinstance(s, Let)
            and s.value is not None
            and s.name not in changed
            and not depends(s.value, changed)
        ):
            known[s.name] = s.value if s.value.dtype == s.dtype else Cast(s.value, s.dtype)
        else:
            out.append(s)
    return tuple(out)
