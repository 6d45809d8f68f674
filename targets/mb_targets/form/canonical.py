"""One way to say each thing: folds accumulate, declarations have their values, nothing is unused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from mb_targets.form.affine import depends, equal, substitute
from mb_targets.form.conversions import arithmetic, convert
from mb_targets.form.dtypes import is_integer
from mb_targets.form.nest import (
    Accumulate,
    Assign,
    Barrier,
    Call,
    Cast,
    Const,
    Expr,
    FoldOperator,
    If,
    Let,
    Load,
    Loop,
    Op,
    Operator,
    Select,
    Stmt,
    Store,
    Var,
)
from mb_targets.form.traverse import blocks, expressions, map_expressions, statements, transform, walk
from mb_targets.model import Dtype

Body = tuple[Stmt, ...]
IsSelf = Callable[[Expr], bool]
_ADD, _TAKE = 1, -1
_FOLD_CALLS: dict[str, FoldOperator] = {"fmax": "max", "max": "max", "fmin": "min", "min": "min"}
_WIDE = frozenset({"u32", "i64", "u64"})
_BITS: dict[str, FoldOperator] = {"*": "*", "&": "&", "|": "|", "^": "^"}


def canonical(body: Body) -> Body:
    """Bring a body to its canonical form."""
    body = tuple(map_expressions(s, lambda e: transform(e, _bare_index)) for s in body)
    body = tuple(_bare_store(s) for s in body)
    return prune(merge_declarations(accumulations(body, _dtypes(body))))


def _bare_index(e: Expr) -> Expr:
    """Leave a cast that only widens an index to the indexing itself."""
    return replace(e, index=_unwidened(e.index)) if isinstance(e, Load) else e


def _bare_store(s: Stmt) -> Stmt:
    match s:
        case Store(index=i):
            return replace(s, index=_unwidened(i))
        case Loop(dtype=d, step=step, body=b):
            return replace(s, step=_fitted_step(step, d), body=tuple(map(_bare_store, b)))
        case If(then=t, otherwise=o):
            return replace(s, then=tuple(map(_bare_store, t)), otherwise=tuple(map(_bare_store, o)))
        case _:
            return s


def _fitted_step(e: Expr, dtype: Dtype) -> Expr:
    return convert(e, dtype) if isinstance(e, Const) else e


def _unwidened(e: Expr) -> Expr:
    """Compute a subscript in ``i32`` where only the widths that its parts are cast to speak against it.

    A product with anything but a constant keeps its width: the user may have widened it for a reason.
    """
    match e:
        case Const(value=v) if is_integer(e.dtype) and abs(v) < 2**31:
            return replace(e, dtype="i32")
        case Cast(value=v) if is_integer(e.dtype) and is_integer(v.dtype):
            inner = _unwidened(v)
            return inner if inner.dtype == "i32" and e.dtype in _WIDE else replace(e, value=inner)
        case Op(op="+" | "-" as op, args=(a, b)):
            return arithmetic(op, _unwidened(a), _unwidened(b))
        case Op(op="*", args=(a, b)) if isinstance(a, Const) or isinstance(b, Const):
            return arithmetic("*", _unwidened(a), _unwidened(b))
        case _:
            return e


def _dtypes(body: Body) -> dict[str, Dtype]:
    return {s.name: s.dtype for s in statements(body) if isinstance(s, Let)}


def fold(value: Expr, is_self: IsSelf, dtype: Dtype) -> tuple[FoldOperator, Expr] | None:
    """Read a new value of something as its old value folded with another; None where it is not that.

    Args:
        value: The new value.
        is_self: Tells the old value.
        dtype: Its dtype.
    """
    if isinstance(value, Cast) and value.dtype == dtype and not is_integer(value.value.dtype):
        value = value.value

    def me(e: Expr) -> bool:
        return is_self(e) or (isinstance(e, Cast) and is_self(e.value))

    def other(a: Expr, b: Expr) -> Expr | None:
        for x, y in ((a, b), (b, a)):
            if me(x) and not any(me(z) for z in walk(y)):
                return y
        return None

    found: Expr | None
    match value:
        case Op(op="+" | "-"):
            found = _without(_addends(value), me)
            return None if found is None else ("+", _fitted(found, dtype))
        case Op(op=op, args=(a, b)) if op in _BITS:
            factors = list(_factors(value, op))
            rest = [f for f in factors if not me(f)]
            if len(rest) != len(factors) - 1 or not rest or any(me(z) for f in rest for z in walk(f)):
                return None
            found = rest[0]
            for f in rest[1:]:
                found = replace(value, args=(found, f))
            return _BITS[op], _fitted(found, dtype)
        case Call(function="mad" | "fma", args=(a, b, c)) if me(c):
            product = Op("*", (a, b), value.dtype)
            return None if any(me(z) for z in walk(product)) else ("+", _fitted(product, dtype))
        case Call(function=f, args=(a, b)) if f in _FOLD_CALLS:
            found = other(a, b)
            return None if found is None else (_FOLD_CALLS[f], _fitted(found, dtype))
        case Select(condition=c, yes=y, no=n):
            found = other(y, n)
            op2 = None if found is None else choice(c, y, n)
            return None if op2 is None or found is None else (op2, _fitted(found, dtype))
        case _:
            return None


def _fitted(e: Expr, dtype: Dtype) -> Expr:
    return e if is_integer(e.dtype) and is_integer(dtype) else convert(e, dtype)


def choice(condition: Expr, yes: Expr, no: Expr) -> FoldOperator | None:
    """Tell whether ``condition ? yes : no`` is the larger or the smaller of the two."""
    match condition:
        case Op(op=">" | ">=" as op, args=(a, b)) | Op(op="<" | "<=" as op, args=(a, b)):
            larger: FoldOperator
            smaller: FoldOperator
            larger, smaller = ("max", "min") if op in {">", ">="} else ("min", "max")
            if _same(a, yes) and _same(b, no):
                return larger
            if _same(a, no) and _same(b, yes):
                return smaller
    return None


def conjuncts(e: Expr) -> Iterable[Expr]:
    """Give the conditions that must all hold."""
    if isinstance(e, Op) and e.op == "&&":
        for a in e.args:
            yield from conjuncts(a)
    else:
        yield e


def _same(a: Expr, b: Expr) -> bool:
    a = a.value if isinstance(a, Cast) else a
    b = b.value if isinstance(b, Cast) else b
    return equal(a, b) or (isinstance(a, Const) and isinstance(b, Const) and a.value == b.value)


def _addends(e: Expr, sign: int = _ADD) -> Iterable[tuple[int, Expr]]:
    match e:
        case Op(op="+" | "-" as op, args=(a, b)):
            yield from _addends(a, sign)
            yield from _addends(b, sign if op == "+" else -sign)
        case _:
            yield sign, e


def _factors(e: Expr, op: str) -> Iterable[Expr]:
    if isinstance(e, Op) and e.op == op:
        for a in e.args:
            yield from _factors(a, op)
    else:
        yield e


def _without(addends: Iterable[tuple[int, Expr]], me: IsSelf) -> Expr | None:
    """Add up all but the one that is the old value; None where that is not there once, with a plus."""
    rest: Expr | None = None
    found = 0
    for sign, e in sorted(addends, key=lambda t: t[0], reverse=True):
        if me(e):
            found += sign if sign > 0 else 2
        elif any(me(x) for x in walk(e)):
            return None
        elif rest is None:
            rest = e if sign > 0 else Op("neg", (e,), e.dtype)
        else:
            op: Operator = "+" if sign > 0 else "-"
            rest = Op(op, (rest, e), rest.dtype)
    return rest if found == 1 else None


def accumulations(body: Body, dtypes: dict[str, Dtype]) -> Body:
    """Write assignments that fold a value into a variable as accumulations."""
    out: list[Stmt] = []
    for s in body:
        match s:
            case Assign(name=n, value=Var(name=same)) if n == same:
                continue
            case Assign(name=n, value=v):
                out.append(_accumulate(s, dtypes[n]) if n in dtypes else s)
            case Loop(body=b):
                out.append(replace(s, body=accumulations(b, dtypes)))
            case If(condition=c, then=(Assign(name=n, value=v),), otherwise=()) if (
                n in dtypes and (op := choice(c, v, Var(n, dtypes[n]))) is not None
            ):
                out.append(Accumulate(n, op, v))
            case If(condition=c, then=t, otherwise=o):
                out.append(If(c, accumulations(t, dtypes), accumulations(o, dtypes)))
            case _:
                out.append(s)
    return tuple(out)


def _accumulate(s: Assign, dtype: Dtype) -> Stmt:
    found = fold(s.value, lambda e: isinstance(e, Var) and e.name == s.name, dtype)
    return s if found is None else Accumulate(s.name, found[0], found[1])


def merge_declarations(body: Body) -> Body:
    """Declare variables where they first get a value."""
    out: list[Stmt] = []
    for s in _sunk(body):
        match s:
            case Loop(body=b):
                s = replace(s, body=merge_declarations(b))
            case If(condition=c, then=t, otherwise=o):
                s = _one_assignment(If(c, merge_declarations(t), merge_declarations(o)), out)
            case _:
                pass
        if isinstance(s, Accumulate) and out and _starts_from_nothing(s, out[-1]):
            first = out.pop()
            assert isinstance(first, Let)
            s = replace(first, value=s.value)
        if isinstance(s, Assign):
            merged = _merged(s, out)
            if merged is not None:
                k, let = merged
                del out[k]
                s = let
        out.append(s)
    return tuple(out)


def _sunk(body: Body) -> Body:
    """Move declarations without a value into the one statement that uses them."""
    out = list(body)
    for let in [s for s in body if isinstance(s, Let) and s.value is None]:
        users = [k for k, s in enumerate(out) if s is not let and _mentions(s, let.name)]
        if len(users) != 1:
            continue
        inner = out[users[0]]
        match inner:
            case Loop(body=b, name=n) if n != let.name and _begins_with_value(b, let.name):
                out[users[0]] = replace(inner, body=(let, *b))
            case If(condition=c, then=t, otherwise=o) if not depends(c, {let.name}):
                branches = [(let, *b) if any(_mentions(s, let.name) for s in b) else b for b in (t, o)]
                out[users[0]] = If(c, branches[0], branches[1])
            case _:
                continue
        del out[next(k for k, s in enumerate(out) if s is let)]
    return tuple(out)


def _mentions(s: Stmt, name: str) -> bool:
    inside = list(statements((s,)))
    changed = any(isinstance(x, Assign | Accumulate | Let) and x.name == name for x in inside)
    return changed or any(depends(e, {name}) for x in inside for e in expressions(x))


def _begins_with_value(body: Body, name: str) -> bool:
    first = next(s for s in body if _mentions(s, name))
    return isinstance(first, Assign) and not depends(first.value, {name})


def _merged(s: Assign, before: list[Stmt]) -> tuple[int, Let] | None:
    """Find the declaration that an assignment may be merged with, and what the two become."""
    for k in range(len(before) - 1, -1, -1):
        earlier = before[k]
        if isinstance(earlier, Let) and earlier.name == s.name:
            if earlier.value is None:
                return (k, replace(earlier, value=s.value)) if not depends(s.value, {s.name}) else None
            old = earlier.value
            uses = sum(isinstance(e, Var) and e.name == s.name for e in walk(s.value))
            if k == len(before) - 1 and (uses <= 1 or isinstance(old, Const | Var)):
                return k, replace(earlier, value=substitute(s.value, {s.name: old}))
            return None
        touched = {x.name for x in statements((earlier,)) if isinstance(x, Let | Assign | Accumulate | Loop)}
        reads = any(depends(e, {s.name}) for x in statements((earlier,)) for e in expressions(x))
        if reads or s.name in touched:
            return None
    return None


def _starts_from_nothing(s: Accumulate, before: Stmt) -> bool:
    neutral = {"+": 0, "*": 1}.get(s.op)
    return (
        isinstance(before, Let)
        and before.name == s.name
        and isinstance(before.value, Const)
        and before.value.value == neutral
    )


def _one_assignment(s: If, before: list[Stmt]) -> Stmt:
    """Write a branch that only chooses a variable's first value as a selection."""
    match s:
        case If(condition=c, then=(Assign(name=a, value=v),), otherwise=(Assign(name=b, value=w),)) if a == b:
            return Assign(a, Select(c, v, convert(w, v.dtype), v.dtype))
        case If(condition=c, then=(Assign(name=a, value=v),), otherwise=()) if before:
            last = before[-1]
            if isinstance(last, Let) and last.name == a and last.value is not None and not depends(v, {a}):
                return Assign(a, Select(c, v, Var(a, last.dtype), last.dtype))
    return s


def prune(body: Body) -> Body:
    """Leave out variables that nothing uses, and branches and loops that do nothing."""
    live: set[str] = set()
    before = -1
    while before != len(live):
        before = len(live)
        _mark(body, live)
    declared = {s.name for s in statements(body) if isinstance(s, Assign | Accumulate)}
    return _kept(body, live, declared)


def _mark(body: Body, live: set[str]) -> None:
    """Add the variables that what is kept reads; what changes only dead variables is not kept."""
    for s in body:
        if isinstance(s, Let | Assign | Accumulate) and s.name not in live:
            continue
        if isinstance(s, If | Loop) and not _matters((s,), live):
            continue
        for e in expressions(s):
            live |= {x.name for x in walk(e) if isinstance(x, Var)}
        for b in blocks(s):
            _mark(b, live)


def _matters(body: Body, live: set[str]) -> bool:
    return any(
        isinstance(s, Store | Barrier) or (isinstance(s, Assign | Accumulate) and s.name in live)
        for s in statements(body)
    )


def _kept(body: Body, live: set[str], changed: set[str]) -> Body:
    out: list[Stmt] = []
    for s in body:
        match s:
            case Let(name=n, value=v):
                if n in live and (v is not None or n in changed):
                    out.append(s)
            case Assign(name=n) | Accumulate(name=n):
                if n in live:
                    out.append(s)
            case Loop(body=b):
                if inner := _kept(b, live, changed):
                    out.append(replace(s, body=inner))
            case If(condition=c, then=t, otherwise=o):
                yes, no = _kept(t, live, changed), _kept(o, live, changed)
                if yes:
                    out.append(If(c, yes, no))
                elif no:
                    out.append(If(Op("!", (c,), "i32"), no))
            case _:
                out.append(s)
    return tuple(out)
