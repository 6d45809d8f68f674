"""Vectorize loops: lanes and several accumulators for reductions, plain lanes for loops that only store."""

from __future__ import annotations

from dataclasses import replace

from mb_targets.form.affine import constant, depends, equal, simplify, substitute
from mb_targets.form.dependence import Declined, inline_indices
from mb_targets.form.expand import Expansion, Tiled
from mb_targets.form.nest import (
    Accumulate,
    Assign,
    Call,
    Const,
    Expr,
    Fold,
    FoldOperator,
    If,
    Let,
    Loop,
    Op,
    Stmt,
    Store,
    Var,
)
from mb_targets.form.tile import fresh
from mb_targets.form.traverse import blocks, expressions, loads, statements
from mb_targets.model import Dtype

IDEMPOTENT: frozenset[FoldOperator] = frozenset({"max", "min", "&", "|"})


def innermost(body: tuple[Stmt, ...]) -> list[str]:
    """Name the loops that hold no other loop, in order."""
    return [
        s.name
        for s in statements(body)
        if isinstance(s, Loop) and not any(isinstance(x, Loop) for x in statements(s.body))
    ]


def vectorize_loops(
    body: tuple[Stmt, ...], lanes: int, copies: int, taken: set[str], dtypes: dict[str, Dtype]
) -> tuple[Stmt, ...]:
    """Vectorize every innermost loop that allows it.

    Args:
        body: The body to rewrite.
        lanes: Lanes of each vector.
        copies: Accumulators of each reduction.
        taken: Names in use; new ones are added.
        dtypes: Dtype of each variable in scope, by name.

    Raises:
        Declined: Not one loop allows it; the reason is that of the last.
    """
    done: list[str] = []
    reasons: list[str] = []

    def visit(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        ends: list[Let] = []
        for s in stmts:
            if isinstance(s, Let):
                dtypes[s.name] = s.dtype
            if isinstance(s, Loop) and not any(isinstance(x, Loop) for x in statements(s.body)):
                before, s = _named_stop(s, taken)
                try:
                    out += before + _share_end(_vectorize(s, lanes, copies, taken, dtypes), ends)
                    done.append(s.name)
                except Declined as e:
                    reasons.append(str(e))
                    out += [*before, s]
                continue
            if isinstance(s, Loop):
                s = replace(s, body=visit(s.body))
            elif isinstance(s, If):
                s = replace(s, then=visit(s.then), otherwise=visit(s.otherwise))
            out.append(s)
        return tuple(out)

    result = visit(body)
    if not done:
        raise Declined(reasons[-1] if reasons else "there is no loop")
    return result


def _vectorize(loop: Loop, lanes: int, copies: int, taken: set[str], dtypes: dict[str, Dtype]) -> list[Stmt]:
    if constant(loop.step) != 1:
        raise Declined(f"loop {loop.name} does not step by 1")
    trip = constant(simplify(Op("-", (loop.stop, loop.start), loop.dtype)))
    if trip is not None and trip < lanes:
        raise Declined(f"loop {loop.name} runs only {trip} times")
    body = inline_indices(loop.body)
    check_memory(loop.name, body)
    folded = accumulators(loop.name, body)
    if not folded and not any(isinstance(s, Store) for s in statements(body)):
        raise Declined(f"loop {loop.name} neither folds nor stores")
    while copies > 1 and (not folded or (trip is not None and trip < lanes * copies)):
        copies //= 2
    block = lanes * copies
    tiled = Tiled(loop.name, Var(loop.name, loop.dtype), copies, lanes)
    local = {name: fresh(f"{name}_v", taken) for name in folded}
    body = _rename(body, local)
    outer = {new: frozenset({loop.name}) for new in local.values()}
    expansion = Expansion((tiled,), body, taken, outer)
    before: list[Stmt] = []
    after: list[Stmt] = []
    for name, op in folded.items():
        dtype = dtypes[name]
        copy_names = [expansion.copy_name(local[name], (k,)) for k in range(copies)]
        start: Expr = Var(name, dtype) if op in IDEMPOTENT else Const(1.0 if op == "*" else 0.0, dtype)
        before += [Let(c, dtype, start, lanes) for c in copy_names]
        while len(copy_names) > 1:  # pairwise, which halves the rounding error's depth
            half = len(copy_names) // 2
            after += [
                Accumulate(copy_names[k], op, Var(copy_names[k + half], dtype, lanes)) for k in range(half)
            ]
            copy_names = copy_names[:half]
        after.append(Accumulate(name, op, Fold(op, Var(copy_names[0], dtype, lanes), dtype)))
    main = expansion.body(body)
    if trip is not None and trip % block == 0:
        vector = replace(loop, step=Const(block, "i32"), body=main)
        return [*before, vector, *after]
    end = Var(fresh(f"{loop.name}_end", taken), loop.dtype)
    length = simplify(Op("-", (loop.stop, loop.start), loop.dtype))
    rest = Op("%", (length, Const(block, "i32")), loop.dtype)
    vector = replace(loop, stop=end, step=Const(block, "i32"), body=main)
    return [
        Let(end.name, loop.dtype, Op("-", (loop.stop, rest), loop.dtype)),
        *before,
        vector,
        *after,
        replace(loop, start=end),
    ]


def _named_stop(loop: Loop, taken: set[str]) -> tuple[list[Stmt], Loop]:
    """Give a stop that has to be worked out a name, since it will stand in several places."""
    if not isinstance(loop.stop, Call):
        return [], loop
    stop = Var(fresh(f"{loop.name}_stop", taken), loop.dtype)
    return [Let(stop.name, loop.dtype, loop.stop)], replace(loop, stop=stop)


def _share_end(new: list[Stmt], ends: list[Let]) -> list[Stmt]:
    """Let loops over the same range share the variable that holds where the whole vectors end."""
    end = new[0]
    if not (isinstance(end, Let) and end.lanes == 1 and end.value is not None):
        return new
    for known in ends:
        assert known.value is not None
        if known.dtype == end.dtype and equal(known.value, end.value):
            values = {end.name: Var(known.name, known.dtype)}
            *others, last = new[1:]
            assert isinstance(last, Loop)
            loops = [
                replace(x, stop=substitute(x.stop, values)) if isinstance(x, Loop) else x for x in others
            ]
            return [*loops, replace(last, start=substitute(last.start, values))]
    ends.append(end)
    return new


def _rename(body: tuple[Stmt, ...], names: dict[str, str]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for s in body:
        match s:
            case Accumulate(name=n) if n in names:
                out.append(replace(s, name=names[n]))
            case If(then=t, otherwise=o):
                out.append(replace(s, then=_rename(t, names), otherwise=_rename(o, names)))
            case _:
                out.append(s)
    return tuple(out)


def accumulators(name: str, body: tuple[Stmt, ...]) -> dict[str, FoldOperator]:
    """Find what the loop folds into variables from outside it.

    Raises:
        Declined: A value is carried from one iteration to the next in another way.
    """
    inside = {s.name for s in statements(body) if isinstance(s, Let)}
    folded: dict[str, FoldOperator] = {}
    for s in statements(body):
        if isinstance(s, Assign) and s.name not in inside:
            raise Declined(f"loop {name} carries {s.name} from one iteration to the next")
        match s:
            case Accumulate(name=n, op=op) if n not in inside and folded.setdefault(n, op) != op:
                raise Declined(f"loop {name} folds {n} in two ways")
            case _:
                pass
    for s in statements(body):
        if any(depends(e, folded) for e in expressions(s)):
            raise Declined(f"loop {name} uses {', '.join(folded)} before the fold is done")
    return folded


def check_memory(name: str, body: tuple[Stmt, ...]) -> None:
    """Refuse a loop in which one iteration might read what another writes.

    Raises:
        Declined: It might.
    """
    stores = [s for s in statements(body) if isinstance(s, Store)]
    for s in stores:
        for load in loads(body):
            if load.buffer == s.buffer and not equal(load.index, s.index):
                raise Declined(f"loop {name} reads {s.buffer} at other places than it writes")
        for other in stores:
            if other.buffer == s.buffer and not equal(other.index, s.index):
                raise Declined(f"loop {name} writes {s.buffer} at several places")


def unroll(body: tuple[Stmt, ...], count: int) -> tuple[Stmt, ...]:
    """Ask the compiler to unroll every innermost loop.

    Raises:
        Declined: There is no loop.
    """
    targets = set(innermost(body))
    if not targets:
        raise Declined("there is no loop")

    def visit(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for s in stmts:
            if isinstance(s, Loop):
                s = (
                    replace(s, unroll=count)
                    if s.name in targets and not blocks_of_loops(s)
                    else replace(s, body=visit(s.body))
                )
            elif isinstance(s, If):
                s = replace(s, then=visit(s.then), otherwise=visit(s.otherwise))
            out.append(s)
        return tuple(out)

    return visit(body)


def blocks_of_loops(s: Loop) -> bool:
    """Tell whether a loop holds another."""
    return any(isinstance(x, Loop) for b in blocks(s) for x in statements(b))
