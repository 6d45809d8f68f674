"""Walk and rewrite forms: every expression and statement, at every depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from mb_targets.form.nest import (
    Accumulate,
    Assign,
    Call,
    Cast,
    Expr,
    Fold,
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
)


def children(e: Expr) -> tuple[Expr, ...]:
    """Give the direct operands of an expression."""
    match e:
        case Load(index=i):
            return (i,)
        case Op(args=args) | Call(args=args):
            return args
        case Select(condition=c, yes=y, no=n):
            return (c, y, n)
        case Cast(value=v):
            return (v,)
        case Pack(items=items):
            return items
        case Lane(vector=v) | Fold(vector=v):
            return (v,)
        case _:
            return ()


def rebuild(e: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """Make the same expression with ``f`` applied to each direct operand."""
    match e:
        case Load(index=i):
            return replace(e, index=f(i))
        case Op(args=args):
            return replace(e, args=tuple(map(f, args)))
        case Call(args=args):
            return replace(e, args=tuple(map(f, args)))
        case Select(condition=c, yes=y, no=n):
            return replace(e, condition=f(c), yes=f(y), no=f(n))
        case Cast(value=v):
            return replace(e, value=f(v))
        case Pack(items=items):
            return replace(e, items=tuple(map(f, items)))
        case Lane(vector=v) | Fold(vector=v):
            return replace(e, vector=f(v))
        case _:
            return e


def transform(e: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """Rewrite bottom-up: ``f`` sees each node after its operands were rewritten."""
    return f(rebuild(e, lambda x: transform(x, f)))


def walk(e: Expr) -> Iterator[Expr]:
    """Visit an expression and everything below it."""
    yield e
    for c in children(e):
        yield from walk(c)


def expressions(s: Stmt) -> Iterator[Expr]:
    """Give the expressions that stand directly in a statement, not those of statements inside it."""
    match s:
        case Let(value=v):
            if v is not None:
                yield v
        case Assign(value=v) | Accumulate(value=v):
            yield v
        case Store(index=i, value=v):
            yield i
            yield v
        case Loop(start=a, stop=b, step=c):
            yield from (a, b, c)
        case If(condition=c):
            yield c
        case _:
            pass


def blocks(s: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """Give the bodies inside a statement."""
    match s:
        case Loop(body=b):
            return (b,)
        case If(then=t, otherwise=o):
            return (t, o)
        case _:
            return ()


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Visit every statement of a body, outer before inner."""
    for s in body:
        yield s
        for b in blocks(s):
            yield from statements(b)


def loads(body: tuple[Stmt, ...]) -> Iterator[Load]:
    """Visit every load of a body."""
    for s in statements(body):
        for top in expressions(s):
            for e in walk(top):
                if isinstance(e, Load):
                    yield e


def map_expressions(s: Stmt, f: Callable[[Expr], Expr]) -> Stmt:
    """Make the same statement with ``f`` applied to each expression in it, at every depth."""

    def inner(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(map_expressions(x, f) for x in body)

    match s:
        case Let(value=v):
            return replace(s, value=None if v is None else f(v))
        case Assign(value=v) | Accumulate(value=v):
            return replace(s, value=f(v))
        case Store(index=i, value=v):
            return replace(s, index=f(i), value=f(v))
        case Loop(start=a, stop=b, step=c, body=body):
            return replace(s, start=f(a), stop=f(b), step=f(c), body=inner(body))
        case If(condition=c, then=t, otherwise=o):
            return If(f(c), inner(t), inner(o))
        case _:
            return s
