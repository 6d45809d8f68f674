"""What a group's local arrays hold, and what reading and writing them comes to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mb_targets.form.affine import constant, simplify, substitute
from mb_targets.form.conversions import convert
from mb_targets.form.dialect import Unliftable
from mb_targets.form.items import Body, Items, bare, loads_of
from mb_targets.form.nest import (
    Accumulate,
    Const,
    Expr,
    FoldOperator,
    If,
    Let,
    Load,
    Select,
    Stmt,
    Store,
    Var,
)
from mb_targets.form.traverse import expressions, map_expressions, statements, transform
from mb_targets.form.trees import Contents, identity, run, steps

_TOTALS: dict[str, str] = {"+": "sum", "*": "product", "max": "largest", "min": "smallest"}


class LocalMemory(Items):
    """The items of one group and their local arrays.

    Attributes:
        arrays: What each array holds.
        alone: The one item that runs what is read, None where all do.
    """

    arrays: dict[str, Contents]
    alone: int | None

    def resolved(self, s: Stmt) -> Stmt:
        """Replace reads of local arrays in a statement by what they hold."""
        return map_expressions(s, self.resolve)

    def resolve(self, e: Expr) -> Expr:
        """Replace reads of local arrays by what they hold."""
        return transform(e, lambda x: self._read(x) if isinstance(x, Load) and x.buffer in self.arrays else x)

    def _read(self, load: Load) -> Expr:
        name, contents = load.buffer, self.arrays[load.buffer]
        index = simplify(self.inlined(load.index))
        own = self.is_item(index)
        at = constant(index)
        if not own:
            contents.read_at(name, at, self.alone)
        if at == 0 and contents.total is not None:
            if not contents.complete(self.size):
                raise Unliftable(f"reads {name}[0] before every work item's value is in it")
            return contents.total
        if contents.value is None or contents.sets:
            raise Unliftable(f"reads local memory {name} in a way that is no reduction")
        if any(x.buffer in self.stored for x in loads_of(contents.value)):
            raise Unliftable(f"changes what local memory {name} was loaded from")
        return contents.value if own else substitute(contents.value, {self.id: convert(index, "i32")})

    def is_tree_read(self, e: Expr) -> bool:
        """Tell whether an expression reads what only a step of a tree may read."""
        for load in loads_of(e):
            contents = self.arrays.get(load.buffer)
            if contents is not None and constant(simplify(self.inlined(load.index))) is None:
                return bool(contents.sets) or contents.value is None
        return False

    def store_local(self, s: Store) -> None:
        """Follow a store to a local array by every item, or by the one that runs alone."""
        contents = self.arrays[s.buffer]
        index = simplify(self.inlined(s.index))
        if constant(index) is not None:
            self._store_one(s, contents, constant(index))
            return
        own = self.is_item(index)
        if self.reads(s, s.buffer) and (contents.value is None or not own):
            self.tree_step(s)
            return
        if not own or self.alone is not None:
            raise Unliftable(f"stores to local memory {s.buffer} at more than each work item's own place")
        share = bare(s.value)
        if isinstance(share, Var) and share.name in self.shares:
            contents.hold(s.buffer, self.size, None, (share.name, self.shares[share.name]))
        else:
            value = self.inlined(self.resolve(s.value))
            self.varies(value)
            contents.hold(s.buffer, self.size, value, None)
        self.end_loop()

    def reads(self, s: Stmt, array: str) -> bool:
        """Tell whether a statement reads a local array."""
        found = (e for x in statements((s,)) for e in expressions(x))
        return any(load.buffer == array for e in found for load in loads_of(self.inlined(e)))

    def _store_one(self, s: Store, contents: Contents, at: int | None) -> None:
        """Let one item store one element, which all may read later."""
        value = self.resolve(s.value)
        if self.alone is None:
            raise Unliftable(f"lets work items race on {s.buffer}")
        if at != 0 or self.varies(value):
            raise Unliftable(f"stores to one place of local memory {s.buffer} in a way that is no reduction")
        contents.write_at(s.buffer, 0, self.alone)
        name = s.buffer if contents.length == 1 else self.fresh(s.buffer)
        total = Var(name, contents.dtype)
        self.out.append(Let(total.name, total.dtype, value))
        contents.clear()
        contents.total = total

    def tree_step(self, s: Stmt) -> None:
        """Follow a step of a tree."""
        inlined = _without_lets((map_expressions(s, self.inlined),))
        found = [step for x in inlined for step in steps(x, self.arrays)]
        for name, op in {step.array: step.op for step in found}.items():
            if self.arrays[name].total is None:
                self._begin_tree(name, op)
        run(found, self.arrays, self.id, self.size)

    def _begin_tree(self, name: str, op: FoldOperator) -> None:
        """Compute at once what the tree will have computed when it is done."""
        contents = self.arrays[name]
        if contents.partial is not None:
            variable, known = contents.partial
            if known != op:
                raise Unliftable(f"adds shares up with {known} and their sums with {op}")
            contents.total = self.spend(variable)
            return
        if contents.value is None:
            raise Unliftable(f"reads local memory {name} before it is written")
        if any(load.buffer in self.stored for load in loads_of(contents.value)):
            raise Unliftable(f"changes what local memory {name} was loaded from")
        neutral = identity(op, contents.dtype)
        total = Var(self.fresh(_TOTALS.get(op, "bits")), contents.dtype)
        self.out.append(Let(total.name, total.dtype, neutral))
        self.end_loop()
        self.over_items(_guarded(Accumulate(total.name, op, contents.value), neutral))
        self.end_loop()
        contents.total = total

    def spend(self, variable: str) -> Var:
        """Make the sum of all shares readable, and each item's own share no more."""
        self.shares.pop(variable, None)
        self.spent.add(variable)
        return Var(variable, self.dtypes[variable])

    def unfinished(self, names: Iterable[str]) -> bool:
        """Tell whether some array's first element does not hold the fold of all yet."""
        held = [c for n in names if (c := self.arrays[n]).length != 1]
        return any(c.total is None or not c.complete(self.size) for c in held)


def _guarded(s: Accumulate, neutral: Const) -> Stmt:
    """Write ``s += c ? x : 0`` as ``if (c) s += x``."""
    match s.value:
        case Select(condition=c, yes=y, no=Const(value=v)) if v == neutral.value:
            return If(c, (replace(s, value=y),))
        case _:
            return s


def _without_lets(body: Body, known: dict[str, Expr] | None = None) -> Body:
    """Put the values of variables in for them."""
    out: list[Stmt] = []
    known = dict(known or {})
    for s in body:
        match s:
            case Let(name=n, value=v) if v is not None:
                known[n] = substitute(v, known)
            case If(condition=c, then=t, otherwise=o):
                out.append(If(substitute(c, known), _without_lets(t, known), _without_lets(o, known)))
            case Store(index=i, value=v):
                out.append(replace(s, index=substitute(i, known), value=substitute(v, known)))
            case _:
                out.append(s)
    return tuple(out)
