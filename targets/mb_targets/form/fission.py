"""Work groups as sequential code: barriers split the body, local memory becomes what it is used for.

Between barriers the items of a group are independent of each other, so that one statement may be run for all
of them before the next. Local arrays are followed by what they hold (``trees``): each item's value, which is
computed again where it is read, or a tree's result.
"""

from __future__ import annotations

from dataclasses import replace

from mb_targets.form.affine import constant, depends, equal, simplify, substitute
from mb_targets.form.canonical import conjuncts, fold
from mb_targets.form.conversions import arithmetic, convert
from mb_targets.form.dialect import GLOBAL, GROUP, LOCAL, Unliftable
from mb_targets.form.dtypes import common, is_integer
from mb_targets.form.items import Body
from mb_targets.form.memory import LocalMemory
from mb_targets.form.nest import (
    Accumulate,
    Array,
    Assign,
    Barrier,
    Call,
    Const,
    Expr,
    FoldOperator,
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
from mb_targets.form.traverse import map_expressions, statements, transform, walk
from mb_targets.form.trees import Contents


def without_items(
    body: Body, dim: int, size: int, item: Var, taken: set[str], count: Expr | None = None
) -> Body:
    """Write the items of a work group as loops of the group.

    Args:
        body: Statements over ids of the dimension, with local arrays and barriers.
        dim: The dimension whose items share a group.
        size: Items of a group.
        item: What the loops over the items call them.
        taken: Names in use; what is invented here is added.
        count: Items of the launch in this dimension, None where that is not known.

    Raises:
        Unliftable: The items work together in a way that is no fold.
    """
    # signed, so that what is left of a bound may fall below zero
    group = Var(f"{GROUP}{dim}", "i32")
    local: Expr = Var(f"{LOCAL}{dim}", "i32") if size > 1 else Const(0, "i32")

    def one(e: Expr) -> Expr:
        if isinstance(e, Var) and e.name == f"{GLOBAL}{dim}":
            first = arithmetic("*", group, Const(size, "i32"))
            return convert(arithmetic("+", first, local), e.dtype)
        return convert(local, e.dtype) if isinstance(e, Var) and e.name == f"{LOCAL}{dim}" else e

    def resolved(e: Expr) -> Expr:
        has_ids = any(isinstance(x, Var) and x.name.startswith("@") for x in walk(e))
        return simplify(transform(e, one)) if has_ids else e

    body = tuple(map_expressions(s, resolved) for s in body)
    dtypes = {s.name: s.dtype for s in statements(body) if isinstance(s, Let)}
    return _Group(dim, size, item, taken, count, dtypes).run(body)


class _Group(LocalMemory):
    """One work group."""

    def run(self, body: Body) -> Body:
        """Give the group's statements."""
        self.arrays, self.alone = {}, None
        self._block(body)
        return tuple(self.out)

    def _block(self, body: Body) -> None:
        for s in body:
            self._statement(s)

    def _statement(self, s: Stmt) -> None:
        self.check_spent(s)
        match s:
            case Array(name=n, dtype=d, length=length):
                self.arrays[n] = Contents(d, length)
            case Barrier():
                self.end_loop()
                for contents in self.arrays.values():
                    contents.barrier()
            case Let():
                self._let(s)
            case Assign():
                self._assign(s)
            case Accumulate():
                self._accumulate(s)
            case Store(buffer=b) if b in self.arrays:
                self.store_local(s)
            case Store():
                self.emit(self.resolved(s))
            case If():
                self._if(s)
            case Loop():
                self._loop(s)
            case _:
                raise Unliftable("uses local memory in a way that is no reduction tree")

    # variables

    def _let(self, s: Let) -> None:
        if s.value is None or self.is_tree_read(s.value):
            self.own[s.name] = s
            return
        value = self.resolve(s.value)
        self._forget(s.name)
        if self.varies(value):
            self.own[s.name] = replace(s, value=value)
        else:
            self.starts[s.name] = value
            self.out.append(replace(s, value=value))

    def _forget(self, name: str) -> None:
        """Let a variable get a new value."""
        self.own.pop(name, None)
        self.shares.pop(name, None)
        self.spent.discard(name)
        self.changes(name)
        for contents in self.arrays.values():
            if contents.total is not None and contents.total.name == name:
                contents.clear()
            if contents.value is not None and depends(contents.value, {name}):
                contents.clear()

    def _assign(self, s: Assign) -> None:
        value = self.resolve(s.value)
        if isinstance(value, Var) and value.name == s.name and s.name in self.spent:
            self.spent.discard(s.name)  # the item takes over the sum of all
            return
        declared = s.name not in self.own
        if not declared and depends(value, {s.name}):
            value = substitute(value, {s.name: self.value_of(s.name)})
        varies = self.varies(value)
        if varies and depends(value, {s.name}):
            raise Unliftable(f"gives {s.name} another value in each work item")
        self._forget(s.name)
        dtype = self.dtypes[s.name]
        if varies:
            self.own[s.name] = Let(s.name, dtype, value)
        else:
            self.end_loop()
            self.out.append(Assign(s.name, value) if declared else Let(s.name, dtype, value))

    def _accumulate(self, s: Accumulate) -> None:
        value = self.resolve(s.value)
        if s.name in self.own:
            new = _combined(s.op, self.value_of(s.name), value)
            let = self.own[s.name]
            self._forget(s.name)
            self.own[s.name] = replace(let, value=new)
        else:
            self.emit(replace(s, value=value))

    # branches

    def _if(self, s: If) -> None:
        if any(isinstance(x, Barrier) for x in statements((s,))) and self.varies(self.resolve(s.condition)):
            raise Unliftable("has a barrier that some work items do not reach")
        touched = {x.buffer for x in statements((s,)) if isinstance(x, Store) and x.buffer in self.arrays}
        alone = self._one_item(s.condition)
        in_tree = any(self.reads(s, n) for n in touched)
        if alone is not None and not s.otherwise and not (in_tree and self.unfinished(touched)):
            self._by_one(s, *alone)
        elif in_tree:
            self.tree_step(s)
        elif touched:
            self._store_chosen(s)
        else:
            condition = self.resolve(s.condition)
            if not self.varies(condition):
                then, otherwise = self._nested(s.then), self._nested(s.otherwise)
                self.out.append(If(condition, then, otherwise))
            else:
                self.emit(self.resolved(s))

    def _nested(self, body: Body) -> Body:
        """Run statements that all items run or none, perhaps often."""
        outer, self.out = self.out, []
        own = dict(self.own)
        changed = {x.name for x in statements(body) if isinstance(x, Assign | Accumulate)}
        for name in changed & set(own):
            raise Unliftable(f"changes each work item's {name} in a branch or loop of the whole group")
        for name in changed:
            self.changes(name)
        arrays = {x.buffer for x in statements(body) if isinstance(x, Store) and x.buffer in self.arrays}
        for name in arrays:
            self.arrays[name].clear()
        self.end_loop()
        self._block(body)
        self.end_loop()
        inner, self.out = tuple(self.out), outer
        self.own = {n: self.own[n] for n in own if n in self.own}
        for name in changed:
            self.changes(name)
        for name in arrays:
            self.arrays[name].clear()
        return inner

    def _one_item(self, condition: Expr) -> tuple[int, Expr | None] | None:
        """Read ``l == 0 && rest``: the item that passes, and the rest."""
        parts = list(conjuncts(self.inlined(condition)))
        for k, part in enumerate(parts):
            item = self._chosen(simplify(part))
            if item is not None:
                rest: Expr | None = None
                for other in parts[:k] + parts[k + 1 :]:
                    rest = other if rest is None else Op("&&", (rest, other), "i32")
                return item, rest
        return None

    def _chosen(self, e: Expr) -> int | None:
        match e:
            case Op(op="==", args=(a, b)) | Op(op="!", args=(Op(op="!=", args=(a, b)),)):
                if self.is_item(a):
                    return constant(b)
                return constant(a) if self.is_item(b) else None
            case Op(op="<", args=(a, b)) if self.is_item(a) and constant(b) == 1:
                return 0
            case _:
                return None

    def _by_one(self, s: If, item: int, rest: Expr | None) -> None:
        """Run what one item alone does, once."""
        place: dict[str, Expr] = {self.id: Const(item, "i32")}

        def there(e: Expr) -> Expr:
            return simplify(substitute(self.inlined(e), place))

        body = tuple(self._fold_of_all(map_expressions(x, there)) for x in s.then)
        own, outer = self.own, self.alone
        changed = {x.name for x in statements(body) if isinstance(x, Assign | Accumulate)}
        if changed & set(own):
            raise Unliftable(f"changes {min(changed & set(own))} in one work item")
        self.own, self.alone = {n: x for n, x in own.items() if x.value is None}, item
        if rest is None:
            self._block(body)
        else:
            condition = self.resolve(there(rest))
            self.varies(condition)
            self.out.append(If(condition, self._nested(body)))
        self.own, self.alone = own, outer
        self.end_loop()

    def _fold_of_all(self, s: Stmt) -> Stmt:
        """Recognise one item's loop over all shares: ``for (j = 0; j < size; j++) s += t[j]``."""
        match s:
            case Loop(
                start=a, stop=b, step=c, body=(Accumulate(op=op, value=Load(buffer=n, index=i)) as acc,)
            ):
                contents = self.arrays.get(n)
            case _:
                return s
        full = constant(a) == 0 and constant(b) == self.size and constant(c) == 1
        if contents is None or contents.partial is None or contents.partial[1] != op or contents.writers:
            return s
        if not full or not equal(i, Var(s.name, s.dtype)) or contents.sets:
            return s
        contents.total = contents.total or self.spend(contents.partial[0])
        contents.sets = [(1 << self.size) - 1]
        return replace(acc, value=Load(n, Const(0, "i32"), contents.dtype))

    def _store_chosen(self, s: If) -> None:
        """Read ``if (c) t[l] = a; else t[l] = b;``, where without an else the element keeps its value."""
        match s:
            case If(condition=c, then=(Store() as yes,), otherwise=(Store() as no,)) if (
                yes.buffer == no.buffer
            ):
                other = no.value
            case If(condition=c, then=(Store() as yes,), otherwise=()):
                known = self.arrays[yes.buffer].value
                if known is None:
                    raise Unliftable(f"leaves some of local memory {yes.buffer} unset")
                other = known
            case _:
                raise Unliftable("uses local memory in a branch in a way that is no reduction")
        dtype = self.arrays[yes.buffer].dtype
        self.store_local(replace(yes, value=Select(c, yes.value, convert(other, dtype), dtype)))

    # loops

    def _loop(self, s: Loop) -> None:
        if not any(isinstance(x, Barrier) for x in statements(s.body)):
            self.emit(self.resolved(self._local_shares(s)))
            return
        bounds = [self.resolve(e) for e in (s.start, s.stop, s.step)]
        if any(self.varies(e) for e in bounds):
            raise Unliftable("has a barrier in a loop that work items run differently often")
        inner = self._nested(s.body)
        self.out.append(replace(s, start=bounds[0], stop=bounds[1], step=bounds[2], body=inner))

    def _local_shares(self, s: Loop) -> Loop:
        """Give ``t[l] += e`` inside a loop a variable: each item's element is its own until a barrier."""
        found = {x.buffer for x in statements(s.body) if isinstance(x, Store) and x.buffer in self.arrays}
        for name in found:
            contents = self.arrays[name]
            start = contents.value
            if start is None or self.alone is not None:
                raise Unliftable(f"uses local memory {name} in a loop in a way that is no reduction")
            variable = Var(self.fresh(f"{name}_own"), contents.dtype)
            s = replace(s, body=tuple(self._as_accumulation(x, name, variable) for x in s.body))
            ops = {x.op for x in statements(s.body) if isinstance(x, Accumulate) and x.name == variable.name}
            if len(ops) != 1:
                raise Unliftable(f"uses local memory {name} in a loop in a way that is no reduction")
            self.dtypes[variable.name] = variable.dtype
            self._let(Let(variable.name, variable.dtype, start))
            contents.hold(name, self.size, None, (variable.name, ops.pop()))
        return s

    def _as_accumulation(self, s: Stmt, array: str, variable: Var) -> Stmt:
        match s:
            case Store(buffer=b, index=i, value=v) if b == array:
                found = fold(
                    v, lambda e: isinstance(e, Load) and e.buffer == b and equal(e.index, i), variable.dtype
                )
                if found is None or not self.is_item(simplify(self.inlined(i))):
                    raise Unliftable(f"uses local memory {array} in a loop in a way that is no reduction")
                return Accumulate(variable.name, found[0], found[1])
            case If(condition=c, then=t, otherwise=o):
                branches = [tuple(self._as_accumulation(x, array, variable) for x in b) for b in (t, o)]
                return If(c, branches[0], branches[1])
            case _:
                return s


def _combined(op: FoldOperator, a: Expr, b: Expr) -> Expr:
    if op == "max" or op == "min":
        dtype = common(a.dtype, b.dtype)
        return Call(op if is_integer(dtype) else f"f{op}", (a, b), dtype)
    return arithmetic(op, a, b)
