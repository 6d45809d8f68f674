"""What depends on what in a body, and subscripts written so that it shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from mb_targets.form.affine import depends, substitute
from mb_targets.form.dtypes import is_integer
from mb_targets.form.nest import (
    Accumulate,
    Assign,
    Call,
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
from mb_targets.form.traverse import blocks, expressions, statements, walk


class Declined(Exception):
    """A schedule's step does not apply; the message says why in words."""


def dependences(body: tuple[Stmt, ...], names: Iterable[str]) -> dict[str, frozenset[str]]:
    """Find, for each variable of a body, which of the names its value depends on, through data or control."""
    found: dict[str, frozenset[str]] = {n: frozenset({n}) for n in names}

    def of(e: Expr) -> frozenset[str]:
        return frozenset().union(*(found.get(x.name, frozenset()) for x in walk(e) if isinstance(x, Var)))

    def visit(stmts: tuple[Stmt, ...], control: frozenset[str]) -> None:
        for s in stmts:
            inside = control.union(*(of(e) for e in expressions(s))) if isinstance(s, If | Loop) else control
            match s:
                case Let(name=n, value=v):
                    found[n] = found.get(n, frozenset()) | (of(v) if v is not None else frozenset()) | control
                case Assign(name=n, value=v) | Accumulate(name=n, value=v):
                    found[n] = found.get(n, frozenset()) | of(v) | control
                case Loop(name=n):
                    found[n] = found.get(n, frozenset()) | inside
                case _:
                    pass
            for b in blocks(s):
                visit(b, inside)

    before: dict[str, frozenset[str]] = {}
    while before != found:
        before = dict(found)
        visit(body, frozenset())
    return found


def inline_indices(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Substitute integer variables that are set once, so that subscripts show what they depend on."""
    changed = {s.name for s in statements(body) if isinstance(s, Assign | Accumulate)}

    def inlinable(s: Stmt) -> bool:
        return (
            isinstance(s, Let)
            and s.value is not None
            and is_integer(s.dtype)
            and s.name not in changed
            and not depends(s.value, changed)
            and not any(
                isinstance(e, Load | Call | Select) or (isinstance(e, Op) and e.op == "%")
                for e in walk(s.value)
            )
        )

    def visit(stmts: tuple[Stmt, ...], known: dict[str, Expr]) -> tuple[Stmt, ...]:
        known = dict(known)
        out: list[Stmt] = []
        for s in stmts:
            s = _here(s, known)
            if inlinable(s):
                assert isinstance(s, Let)
                assert s.value is not None
                known[s.name] = s.value
                continue
            match s:
                case Loop(body=b):
                    out.append(replace(s, body=visit(b, known)))
                case If(then=t, otherwise=o):
                    out.append(replace(s, then=visit(t, known), otherwise=visit(o, known)))
                case _:
                    out.append(s)
        return tuple(out)

    return visit(body, {})


def _here(s: Stmt, known: Mapping[str, Expr]) -> Stmt:
    """Substitute in the expressions that stand directly in a statement."""
    match s:
        case Loop(start=a, stop=b, step=c):
            return replace(
                s, start=substitute(a, known), stop=substitute(b, known), step=substitute(c, known)
            )
        case If(condition=c):
            return replace(s, condition=substitute(c, known))
        case Let(value=v):
            return replace(s, value=None if v is None else substitute(v, known))
        case Assign(value=v) | Accumulate(value=v):
            return replace(s, value=substitute(v, known))
        case Store(index=i, value=v):
            return replace(s, index=substitute(i, known), value=substitute(v, known))
        case _:
            return s
