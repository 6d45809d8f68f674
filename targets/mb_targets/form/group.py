"""Give a whole work group to what one item did: its loops are dealt out, its folds meet in local memory."""

from __future__ import annotations

from dataclasses import replace

from mb_targets.form.affine import constant, simplify
from mb_targets.form.dependence import Declined, inline_indices
from mb_targets.form.nest import (
    Accumulate,
    Array,
    Assign,
    Barrier,
    Call,
    Const,
    Expr,
    FoldOperator,
    Form,
    If,
    Let,
    Load,
    Loop,
    Op,
    Stmt,
    Store,
    Tree,
    Var,
)
from mb_targets.form.rows import IDEMPOTENT, accumulators, check_memory
from mb_targets.form.tile import fresh, names
from mb_targets.form.traverse import statements
from mb_targets.model import Dtype


def cooperate(form: Form, items: int, dtypes: dict[str, Dtype]) -> Form:
    """Let ``items`` items of a group share the work of each value of the axes.

    Neighbouring items take neighbouring iterations of each loop, which a GPU reads in one piece. What stands
    outside the loops is computed by all of them alike, and stored by the first.

    Raises:
        Declined: There is no loop, or one carries a value from one iteration to the next.
    """
    taken = names(form)
    item = Var(fresh("lid", taken), "i32")
    trees = _Trees(items, item, taken, dtypes)
    body: list[Stmt] = []
    dealt = False
    for s in form.body:
        match s:
            case Loop():
                body += trees.deal(s)
                dealt = True
            case Store():
                body.append(If(Op("==", (item, Const(0, "i32")), "i32"), (s,)))
            case Let() | Assign() | Accumulate():
                body.append(s)
            case _:
                raise Declined("a branch stands around the loops")
    if not dealt:
        raise Declined("there is no loop to share")
    first = Let(item.name, "i32", Call("get_local_id", (Const(0, "i32"),), "i32"))
    axes = tuple(replace(a, level="tile", source=a.dim if a.source is None else a.source) for a in form.axes)
    return replace(form, axes=axes, body=(*trees.arrays(), first, *body))


class _Trees:
    """Deals loops out and folds what their items found."""

    def __init__(self, items: int, item: Var, taken: set[str], dtypes: dict[str, Dtype]):
        self._items = items
        self._item = item
        self._taken = taken
        self._dtypes = dtypes
        self._arrays: dict[Dtype, str] = {}

    def arrays(self) -> list[Stmt]:
        """Declare the local memory that the folds need."""
        return [Array(name, dtype, self._items, "local") for dtype, name in self._arrays.items()]

    def deal(self, loop: Loop) -> list[Stmt]:
        """Give every ``items``-th iteration to one item, then fold the items' results."""
        if constant(loop.step) is None or any(isinstance(s, Loop) for s in statements(loop.body)):
            raise Declined(f"loop {loop.name} is no innermost loop of constant step")
        body = inline_indices(loop.body)
        check_memory(loop.name, body)
        folded = accumulators(loop.name, body)
        start = simplify(Op("+", (loop.start, Op("*", (self._item, loop.step), "i32")), loop.dtype))
        step = simplify(Op("*", (loop.step, Const(self._items, "i32")), "i32"))
        own = {n: fresh(f"{n}_own", self._taken) for n in folded}
        before = [Let(own[n], self._dtypes[n], self._neutral(n, op)) for n, op in folded.items()]
        mine = replace(loop, start=start, step=step, body=tuple(_own(s, own) for s in loop.body))
        out: list[Stmt] = [*before, mine]
        for n, op in folded.items():
            out += self._fold(n, own[n], op)
        if not folded and any(isinstance(s, Store) for s in statements(loop.body)):
            out.append(Barrier("global"))
        return out

    def _neutral(self, name: str, op: FoldOperator) -> Expr:
        dtype = self._dtypes[name]
        return Var(name, dtype) if op in IDEMPOTENT else Const(1.0 if op == "*" else 0.0, dtype)

    def _fold(self, name: str, own: str, op: FoldOperator) -> list[Stmt]:
        dtype = self._dtypes[name]
        if dtype not in self._arrays:
            self._arrays[dtype] = fresh("fold", self._taken)
        array = self._arrays[dtype]
        out: list[Stmt] = [Store(array, self._item, Var(own, dtype)), Barrier()]
        out.append(Tree(array, self._item.name, op, self._items, dtype))
        out.append(Accumulate(name, op, Load(array, Const(0, "i32"), dtype)))
        out.append(Barrier())
        return out


def _own(s: Stmt, own: dict[str, str]) -> Stmt:
    match s:
        case Accumulate(name=n) if n in own:
            return replace(s, name=own[n])
        case If(then=t, otherwise=o):
            return replace(s, then=tuple(_own(x, own) for x in t), otherwise=tuple(_own(x, own) for x in o))
        case _:
            return s
