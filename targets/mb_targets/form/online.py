"""Row statistics in one pass: the online softmax and Welford's mean and variance.

Both replace two passes over a row by one that corrects what it has summed whenever the maximum or the mean
moves (Milakov and Gimelshein 2018; Welford 1962). They round differently.
"""

from __future__ import annotations

from dataclasses import replace

from mb_targets.form.affine import depends, equal, substitute
from mb_targets.form.dependence import Declined
from mb_targets.form.nest import Accumulate, Assign, Call, Cast, Const, Expr, If, Let, Loop, Op, Stmt, Var
from mb_targets.form.rewrite import Body, flatten_lets
from mb_targets.form.tile import fresh


def one_pass(body: Body, taken: set[str]) -> Body:
    """Fuse the first pair of passes of a known kind.

    Raises:
        Declined: There is none.
    """
    for i, first in enumerate(body):
        if not isinstance(first, Loop):
            continue
        for j in range(i + 1, len(body)):
            second = body[j]
            if isinstance(second, Loop):
                between = body[i + 1 : j]
                fused = _softmax(first, between, second, taken) or _welford(first, between, second, taken)
                if fused is not None:
                    return (*body[:i], *fused, *body[j + 1 :])
                break
    raise Declined("no two passes are a maximum and its exponentials, or a mean and its squares")


def _same_range(a: Loop, b: Loop) -> bool:
    return equal(a.start, b.start) and equal(a.stop, b.stop) and equal(a.step, b.step)


def _only_fold(loop: Loop) -> Accumulate | None:
    match flatten_lets(loop.body):
        case (Accumulate() as fold,):
            return fold
        case _:
            return None


def _lets(between: Body) -> list[Let] | None:
    found = [s for s in between if isinstance(s, Let)]
    return found if len(found) == len(between) else None


def _softmax(first: Loop, between: Body, second: Loop, taken: set[str]) -> list[Stmt] | None:
    top, total, lets = _only_fold(first), _only_fold(second), _lets(between)
    if top is None or total is None or lets is None or top.op != "max" or total.op != "+":
        return None
    m = Var(top.name, top.value.dtype)
    x_here = substitute(top.value, {first.name: Var(second.name, second.dtype)})
    match total.value:
        case Call(function="exp", args=(Op(op="-", args=(a, b)),)) if equal(a, x_here) and equal(b, m):
            pass
        case _:
            return None
    if not _same_range(first, second) or any(
        let.value is not None and depends(let.value, (m.name,)) for let in lets
    ):
        return None
    s = Var(total.name, total.value.dtype)
    x = Var(fresh("x", taken), m.dtype)

    def exp(e: Expr) -> Expr:
        return Call("exp", (e,), s.dtype)

    rescaled = Op("*", (s, exp(Op("-", (m, x), m.dtype))), s.dtype)
    body: Body = (
        Let(x.name, x.dtype, top.value),
        If(Op(">", (x, m), "i32"), (Assign(s.name, rescaled), Assign(m.name, x))),
        Accumulate(s.name, "+", exp(Op("-", (x, m), m.dtype))),
    )
    return [*lets, replace(first, body=body)]


def _welford(first: Loop, between: Body, second: Loop, taken: set[str]) -> list[Stmt] | None:
    total, squares = _only_fold(first), _only_fold(second)
    if (
        total is None
        or squares is None
        or total.op != "+"
        or squares.op != "+"
        or not _same_range(first, second)
    ):
        return None
    mean, others = _mean(total.name, between)
    if mean is None:
        return None
    x_here = substitute(total.value, {first.name: Var(second.name, second.dtype)})
    match squares.value:
        case Op(op="*", args=(a, b)) if equal(a, b):
            pass
        case _:
            return None
    if not (isinstance(a, Op) and a.op == "-" and equal(a.args[0], x_here) and equal(a.args[1], mean)):
        return None
    dtype = total.value.dtype
    x, d = Var(fresh("x", taken), dtype), Var(fresh("delta", taken), dtype)
    count = Cast(
        Op("+", (Op("-", (Var(first.name, first.dtype), first.start), "i32"), Const(1, "i32")), "i32"), dtype
    )
    body: Body = (
        Let(x.name, dtype, total.value),
        Let(d.name, dtype, Op("-", (x, mean), dtype)),
        Accumulate(mean.name, "+", Op("/", (d, count), dtype)),
        Accumulate(squares.name, "+", Op("*", (d, Op("-", (x, mean), dtype)), dtype)),
    )
    start: list[Stmt] = [] if mean.name == total.name else [Let(mean.name, dtype, Const(0.0, dtype))]
    return [*start, *others, replace(first, body=body)]


def _mean(total: str, between: Body) -> tuple[Var | None, list[Stmt]]:
    """Find the statement that divides the sum, and what else stands between the passes."""
    mean: Var | None = None
    others: list[Stmt] = []
    for s in between:
        match s:
            case Assign(name=n, value=Op(op="/" | "*", args=(Var(name=t), _)) as v) if n == total == t:
                mean = Var(n, v.dtype)
            case Let(name=n, value=Op(op="/" | "*", args=(Var(name=t), _)) as v) if t == total:
                mean = Var(n, v.dtype)
            case Let(value=None) | Let(value=Const()):
                others.append(s)
            case _:
                return None, []
    return mean, others
