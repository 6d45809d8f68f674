"""What the items of a work group compute between two barriers, as statements of the whole group.

What all items compute alike is computed once. A value of each item's own is computed again where it is
needed. A variable to which every item adds a share holds the sum of all shares from then on, and may only be
used through the tree that adds them up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mb_targets.form.affine import constant, depends, equal, split, substitute
from mb_targets.form.bounds import clamped
from mb_targets.form.conversions import arithmetic, convert
from mb_targets.form.dialect import GROUPS, LOCAL, Unliftable
from mb_targets.form.dtypes import common
from mb_targets.form.nest import (
    Accumulate,
    Assign,
    Call,
    Cast,
    Const,
    Expr,
    FoldOperator,
    Let,
    Load,
    Loop,
    Stmt,
    Store,
    Var,
)
from mb_targets.form.traverse import expressions, map_expressions, statements, transform, walk
from mb_targets.form.trees import IDEMPOTENT, identity
from mb_targets.model import Dtype

Body = tuple[Stmt, ...]


class Items:
    """The items of one group and what the group has computed so far.

    Args:
        dim: The dimension whose items share a group.
        size: Items of a group.
        item: What loops over the items call them.
        taken: Names in use; what is invented here is added.
        count: Items of the launch in this dimension, None where that is not known.
        dtypes: Dtype of each variable.
    """

    def __init__(
        self, dim: int, size: int, item: Var, taken: set[str], count: Expr | None, dtypes: dict[str, Dtype]
    ) -> None:
        self.dim = dim
        self.id = f"{LOCAL}{dim}"
        self.size = size
        self.dtypes = dtypes
        self.out: list[Stmt] = []
        self.own: dict[str, Let] = {}  # each item's own values, to be computed where they are used
        self.shares: dict[str, FoldOperator] = {}
        self.spent: set[str] = set()  # shares that a tree has added up: the item's own is gone
        self.starts: dict[str, Expr] = {}
        self.stored: set[str] = set()
        self._item = item
        self._taken = taken
        self._count = count
        self._loop_at: int | None = None

    def varies(self, e: Expr) -> bool:
        """Tell whether an expression differs between items.

        Raises:
            Unliftable: It uses an item's share of a sum.
        """
        for name in self.shares:
            if depends(e, {name}):
                raise Unliftable(f"uses each work item's share of {name} for more than a reduction")
        return depends(e, {self.id, *self.own})

    def check_spent(self, s: Stmt) -> None:
        """Refuse a statement of the user's that reads an item's share after it was added up."""
        inside = list(statements((s,)))
        spent = self.spent - {x.name for x in inside if isinstance(x, Let)}
        for x in inside:
            changed = isinstance(x, Accumulate) and x.name in spent
            if changed or any(depends(e, spent) for e in expressions(x)):
                raise Unliftable("uses each work item's share of a sum after it was added up")

    def inlined(self, e: Expr) -> Expr:
        """Put each item's own values in for their names."""
        # in the order of the declarations, so that the last one's value is put in first
        for name, let in reversed(self.own.items()):
            if let.value is not None and depends(e, {name}):
                self._check_fresh(let)
                e = substitute(e, {name: let.value})
        return e

    def value_of(self, name: str) -> Expr:
        """Give an item's own value."""
        value = self.own[name].value
        if value is None:
            raise Unliftable(f"uses a value of {name} that is not known here")
        return value

    def changes(self, name: str) -> None:
        """Note that a variable of the group changes: what was computed from it cannot be computed again."""
        self.starts.pop(name, None)
        for own, let in self.own.items():
            if let.value is not None and depends(let.value, {name}):
                self.own[own] = replace(let, value=None)

    def is_item(self, e: Expr) -> bool:
        """Tell whether an expression is the item's id."""
        e = bare(e)
        return isinstance(e, Var) and e.name == self.id

    def end_loop(self) -> None:
        """Let what follows not join the last loop over the items."""
        self._loop_at = None

    def emit(self, s: Stmt) -> None:
        """Add a statement that every item runs: once where it is alike, else in a loop over the items."""
        folded = {x.name: x.op for x in statements((s,)) if isinstance(x, Accumulate)}
        inner = {x.name for x in statements((s,)) if isinstance(x, Let | Loop)}
        outer = {n: op for n, op in folded.items() if n not in inner}
        varies = [self.varies(e) for x in statements((s,)) for e in expressions(x)]
        assigned = {x.name for x in statements((s,)) if isinstance(x, Assign)} - inner
        if any(varies):
            if assigned:
                raise Unliftable(f"gives {min(assigned)} another value in each work item")
            for name, op in outer.items():
                self._share(name, op)
        elif any(n in self.shares for n in outer):
            raise Unliftable(f"adds to {min(outer)} in another way than to each work item's share")
        for name in {*outer, *assigned}:
            self.changes(name)
        if any(varies):
            dealt = self._dealt(s)
            if dealt is None:
                self.over_items(s)
            else:
                self._add(dealt)
        else:
            self._add(s)
        self.stored |= {x.buffer for x in statements((s,)) if isinstance(x, Store)}

    def _add(self, s: Stmt) -> None:
        self.end_loop()
        self.out.append(s)

    def _share(self, name: str, op: FoldOperator) -> None:
        """Let a variable hold the sum of all items' shares from here on."""
        if name in self.own:
            value = self.value_of(name)
            let = self.own.pop(name)
            neutral = identity(op, let.dtype)
            self._add(replace(let, value=neutral))
            self.shares[name] = op
            self.over_items(Accumulate(name, op, value))
            return
        known = self.shares.get(name)
        if known is not None:
            if known != op:
                raise Unliftable(f"folds {name} with two operators")
            return
        start = self.starts.get(name)
        begins_neutral = isinstance(start, Const) and start.value == identity(op, start.dtype).value
        if not begins_neutral and op not in IDEMPOTENT:
            raise Unliftable(f"starts each work item's share of {name} from a value of its own")
        self.shares[name] = op

    def over_items(self, s: Stmt) -> None:
        """Add a statement in a loop over the items, with the items' own values that it uses."""
        lets = self._needed(s)
        if self._loop_at is not None and self._loop_at == len(self.out) - 1:
            last = self.out[-1]
            assert isinstance(last, Loop)
            known = {x.name for x in last.body if isinstance(x, Let)}
            lets = [x for x in lets if x.name not in known]
            for let in lets:
                self._check_fresh(let)
            self.out[-1] = replace(last, body=(*last.body, *self._named((*lets, s))))
            return
        for let in lets:
            self._check_fresh(let)
        dtype = self._item.dtype
        body = self._named((*lets, s))
        loop = Loop(self._item.name, dtype, Const(0, dtype), Const(self.size, dtype), Const(1, dtype), body)
        shorter = clamped(loop)
        self.out.append(shorter)
        self._loop_at = len(self.out) - 1 if shorter is loop else None

    def fresh(self, name: str) -> str:
        """Make a name that is not in use."""
        new, count = name, 1
        while new in self._taken:
            new, count = f"{name}_{count}", count + 1
        self._taken.add(new)
        return new

    def _check_fresh(self, let: Let) -> None:
        if let.value is not None and any(load.buffer in self.stored for load in loads_of(let.value)):
            raise Unliftable(f"changes what {let.name} was loaded from before it is used again")

    def _named(self, body: Body) -> Body:
        def one(e: Expr) -> Expr:
            return convert(self._item, e.dtype) if isinstance(e, Var) and e.name == self.id else e

        return tuple(map_expressions(s, lambda e: transform(e, one)) for s in body)

    def _needed(self, s: Stmt) -> list[Let]:
        """List the items' own values that a statement uses, in order."""
        wanted: set[str] = set()
        todo = {n for x in statements((s,)) for e in expressions(x) for n in self.own if depends(e, {n})}
        while todo:
            name = todo.pop()
            wanted.add(name)
            todo |= {n for n in self.own if depends(self.value_of(name), {n})} - wanted
        return [let for n, let in self.own.items() if n in wanted]

    def _dealt(self, s: Stmt) -> Stmt | None:
        """Undo how iterations are dealt out: ``c = l; c < n; c += size`` is ``c = 0; c < n; c++``."""
        if not isinstance(s, Loop):
            return None
        inside = [e for x in statements(s.body) for e in expressions(x)]
        if any(self.varies(e) for e in (*inside, s.stop, s.step) if not depends(e, self.shares)):
            return None
        parts = split(bare(self.inlined(s.start)), self.id)
        if parts is None or constant(parts[0]) != 1:
            return None
        base = convert(parts[1], s.dtype)
        one = Const(1, s.dtype)
        if constant(s.step) == self.size:
            return replace(s, start=base, step=one)
        if not self._is_global_size(s.step):
            return None
        block = Var(self.fresh(f"{s.name}0"), s.dtype)
        stop = arithmetic("+", block, Const(self.size, s.dtype))
        limit = Call("min", (stop, s.stop), common(stop.dtype, s.stop.dtype))
        inner = replace(s, start=block, stop=limit, step=one)
        return Loop(block.name, s.dtype, base, s.stop, s.step, (inner,))

    def _is_global_size(self, e: Expr) -> bool:
        e = bare(e)
        if self._count is not None and equal(e, self._count):
            return True
        if isinstance(e, Call) and e.function == "get_global_size":
            return constant(e.args[0]) == self.dim
        groups = Var(f"{GROUPS}{self.dim}", "u64")
        return equal(e, arithmetic("*", groups, Const(self.size, "u64")))


def bare(e: Expr) -> Expr:
    """Take conversions off."""
    while isinstance(e, Cast):
        e = e.value
    return e


def loads_of(e: Expr) -> Iterable[Load]:
    """Visit every load of an expression."""
    return (x for x in walk(e) if isinstance(x, Load))
