"""Work groups as sequential code: barriers split the body, what the items do in between becomes loops over them.

What all items of a group compute alike is computed once. A value of each item's own is computed again where it
is needed. A variable to which every item adds a share holds the sum of the shares from then on, and may only be
used through the tree that adds them up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mb_targets.form.affine import constant, depends, equal, simplify, split, substitute
from mb_targets.form.canonical import conjuncts, fold
from mb_targets.form.cexpr import arithmetic, convert
from mb_targets.form.dialect import GLOBAL, GROUP, GROUPS, LOCAL, Unliftable
from mb_targets.form.dtypes import common
from mb_targets.form.nest import (
    Accumulate,
    Array,
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
    Select,
    Stmt,
    Store,
    Var,
    expressions,
    loads,
    map_expressions,
    statements,
    transform,
    walk,
)
from mb_targets.form.trees import IDEMPOTENT, Contents, identity, run, steps
from mb_targets.model import Dtype

Body = tuple[Stmt, ...]
_TOTALS: dict[str, str] = {"+": "sum", "*": "product", "max": "largest", "min": "smallest"}


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
        if not isinstance(e, Var):
            return e
        if e.name == f"{GLOBAL}{dim}":
            first = arithmetic("*", group, Const(size, "i32"))
            return convert(arithmetic("+", first, local), e.dtype)
        if e.name == f"{LOCAL}{dim}":
            return convert(local, e.dtype)
        return e

    body = tuple(
        map_expressions(s, lambda e: simplify(transform(e, one)) if _has_ids(e) else e) for s in body
    )
    return _Group(dim, size, item, taken, count, body).run()


def _has_ids(e: Expr) -> bool:
    return any(isinstance(x, Var) and x.name.startswith("@") for x in walk(e))


class _Group:
    """One work group's items, run together."""

    def __init__(
        self, dim: int, size: int, item: Var, taken: set[str], count: Expr | None, body: Body
    ) -> None:
        self._dim = dim
        self._id = f"{LOCAL}{dim}"
        self._size = size
        self._item = item
        self._taken = taken
        self._body = body
        self._out: list[Stmt] = []
        self._arrays: dict[str, Contents] = {}
        self._own: dict[str, Let] = {}  # each item's own values, to be computed where they are used
        self._shares: dict[str, FoldOperator] = {}
        self._starts: dict[str, Expr] = {}
        self._dtypes: dict[str, Dtype] = {s.name: s.dtype for s in statements(body) if isinstance(s, Let)}
        self._stored: set[str] = set()
        self._loop_at: int | None = None
        self._count = count
        self._single = False  # whether one item alone runs this

    def run(self) -> Body:
        """Give the group's statements."""
        self._block(self._body)
        return tuple(self._out)

    def _block(self, body: Body) -> None:
        for s in body:
            self._statement(s)

    def _statement(self, s: Stmt) -> None:
        match s:
            case Array(name=n, dtype=d, length=length):
                self._arrays[n] = Contents(d, length)
            case Barrier():
                self._loop_at = None
                for contents in self._arrays.values():
                    contents.barrier()
            case Let():
                self._let(s)
            case Assign():
                self._assign(s)
            case Accumulate():
                self._accumulate(s)
            case Store(buffer=b) if b in self._arrays:
                self._store_local(s)
            case Store():
                self._emit(self._resolved(s))
            case If():
                self._if(s)
            case Loop():
                self._loop(s)
            case _:
                raise Unliftable("uses local memory in a way that is no reduction tree")

    # what depends on the item

    def _varies(self, e: Expr) -> bool:
        shared = [n for n in self._shares if depends(e, {n})]
        if shared:
            raise Unliftable(f"uses each work item's share of {shared[0]} for more than a reduction")
        return depends(e, {self._id, *self._own})

    def _any_varies(self, s: Stmt) -> bool:
        return any(self._varies(e) for x in statements((s,)) for e in expressions(x))

    def _inlined(self, e: Expr) -> Expr:
        """Put each item's own values in for their names."""
        # in the order of the declarations, so that the last one's value is put in first
        for name, let in reversed(self._own.items()):
            if let.value is not None and depends(e, {name}):
                e = substitute(e, {name: let.value})
        return e

    # reading local memory

    def _resolved(self, s: Stmt) -> Stmt:
        return map_expressions(s, self._resolve)

    def _resolve(self, e: Expr) -> Expr:
        """Replace reads of local arrays by what they hold."""
        return transform(
            e, lambda x: self._read(x) if isinstance(x, Load) and x.buffer in self._arrays else x
        )

    def _read(self, load: Load) -> Expr:
        name, contents = load.buffer, self._arrays[load.buffer]
        index = simplify(self._inlined(load.index))
        own = isinstance(_bare(index), Var) and getattr(_bare(index), "name", "") == self._id
        if own and contents.value is not None:
            return contents.value
        at = constant(index)
        if at is not None:
            contents.read_at(name, at, 0 if self._single else -1)
        elif contents.writers:
            raise Unliftable(f"lets work items race on {name}: a barrier is missing")
        if at == 0 and (contents.sets or contents.total is not None):
            return self._total(name, contents)
        if contents.value is None or contents.sets:
            raise Unliftable(f"reads local memory {name} in a way that is no reduction")
        if any(load.buffer in self._stored for load in _loads(contents.value)):
            raise Unliftable(f"changes what local memory {name} was loaded from")
        if not own:
            contents.readers |= {-1: -1}
        return substitute(contents.value, {self._id: convert(index, "i32")})

    def _total(self, name: str, contents: Contents) -> Var:
        if contents.sets and contents.sets[0] != (1 << self._size) - 1:
            raise Unliftable(f"reads {name}[0] before every work item's value is in it")
        assert contents.total is not None
        return contents.total

    # statements of every item

    def _let(self, s: Let) -> None:
        if s.value is None:
            self._own[s.name] = s
            return
        if self._is_tree_read(s.value):
            self._own[s.name] = s
            return
        value = self._resolve(s.value)
        self._own.pop(s.name, None)
        self._shares.pop(s.name, None)
        if self._varies(value):
            self._own[s.name] = replace(s, value=value)
        else:
            self._starts[s.name] = value
            self._out.append(replace(s, value=value))

    def _is_tree_read(self, e: Expr) -> bool:
        """Tell whether an expression reads what only a step of a tree may read."""
        for load in _loads(e):
            if load.buffer in self._arrays and constant(simplify(self._inlined(load.index))) is None:
                contents = self._arrays[load.buffer]
                if contents.sets or contents.value is None or contents.partial is not None:
                    return True
        return False

    def _assign(self, s: Assign) -> None:
        value = self._resolve(s.value)
        dtype = self._dtypes[s.name]
        if isinstance(value, Var) and value.name == s.name and self._is_total(value):
            self._shares.pop(s.name, None)
            return
        if s.name in self._own and depends(value, {s.name}):
            value = substitute(value, {s.name: self._value_of(s.name)})
        if self._varies(value):
            if depends(value, {s.name}):
                raise Unliftable(f"gives {s.name} another value in each work item")
            self._own[s.name] = Let(s.name, dtype, value)
            return
        declared = s.name not in self._own
        self._own.pop(s.name, None)
        self._shares.pop(s.name, None)
        self._starts.pop(s.name, None)
        self._out.append(Assign(s.name, value) if declared else Let(s.name, dtype, value))

    def _is_total(self, v: Var) -> bool:
        return any(c.total is not None and c.total.name == v.name for c in self._arrays.values())

    def _value_of(self, name: str) -> Expr:
        value = self._own[name].value
        if value is None:
            raise Unliftable(f"reads {name} before it has a value")
        return value

    def _accumulate(self, s: Accumulate) -> None:
        value = self._resolve(s.value)
        if s.name in self._own:
            old = self._value_of(s.name)
            self._own[s.name] = replace(self._own[s.name], value=_combined(s.op, old, value))
        else:
            self._emit(replace(s, value=value))

    # statements as loops over the items

    def _emit(self, s: Stmt) -> None:
        """Add a statement that every item runs: once where it is the same for all, else in a loop over them."""
        folded = {x.name: x.op for x in statements((s,)) if isinstance(x, Accumulate)}
        inner = {x.name for x in statements((s,)) if isinstance(x, Let | Loop)}
        varies = self._any_varies(s)
        if varies:
            for x in statements((s,)):
                if isinstance(x, Assign) and x.name not in inner:
                    raise Unliftable(f"gives {x.name} another value in each work item")
            for name, op in folded.items():
                if name not in inner:
                    self._share(name, op)
        elif any(n in self._shares for n in folded):
            raise Unliftable(f"adds to {next(iter(folded))} in some work items alone")
        self._stored |= {x.buffer for x in statements((s,)) if isinstance(x, Store)}
        if not varies:
            self._loop_at = None
            self._out.append(s)
            return
        merged = self._dealt(s)
        if merged is not None:
            self._loop_at = None
            self._out.append(merged)
        else:
            self._over_items(s)

    def _share(self, name: str, op: FoldOperator) -> None:
        """Let a variable hold the sum of all items' shares from here on."""
        if name in self._own:
            let = self._own.pop(name)
            if let.value is None:
                raise Unliftable(f"adds to {name} before it has a value")
            neutral = identity(op, let.dtype)
            self._out.append(replace(let, value=neutral))
            self._starts[name] = neutral
            self._shares[name] = op
            self._over_items(Accumulate(name, op, let.value))
            return
        known = self._shares.get(name)
        if known is not None:
            if known != op:
                raise Unliftable(f"folds {name} with two operators")
            return
        start = self._starts.get(name)
        begins_neutral = isinstance(start, Const) and start.value == identity(op, start.dtype).value
        if not begins_neutral and op not in IDEMPOTENT:
            raise Unliftable(f"starts each work item's share of {name} from a value of its own")
        self._shares[name] = op

    def _over_items(self, s: Stmt) -> None:
        lets = self._needed(s)
        if self._loop_at is not None and self._loop_at == len(self._out) - 1:
            last = self._out[-1]
            assert isinstance(last, Loop)
            known = {x.name for x in last.body if isinstance(x, Let)}
            fresh = [x for x in lets if x.name not in known]
            self._out[-1] = replace(last, body=(*last.body, *self._named((*fresh, s))))
            return
        for let in lets:
            if let.value is not None and any(load.buffer in self._stored for load in _loads(let.value)):
                raise Unliftable(f"changes what {let.name} was loaded from before it is used again")
        zero, one = Const(0, self._item.dtype), Const(1, self._item.dtype)
        body = self._named((*lets, s))
        loop = Loop(self._item.name, self._item.dtype, zero, Const(self._size, self._item.dtype), one, body)
        self._out.append(clamped(loop))
        self._loop_at = len(self._out) - 1 if self._out[-1] is loop else None

    def _named(self, body: Body) -> Body:
        def one(e: Expr) -> Expr:
            return convert(self._item, e.dtype) if isinstance(e, Var) and e.name == self._id else e

        return tuple(map_expressions(s, lambda e: transform(e, one)) for s in body)

    def _needed(self, s: Stmt) -> list[Let]:
        """List the items' own values that a statement uses, in order."""
        wanted: set[str] = set()
        todo = {n for x in statements((s,)) for e in expressions(x) for n in self._own if depends(e, {n})}
        while todo:
            name = todo.pop()
            wanted.add(name)
            todo |= {n for n in self._own if depends(self._value_of(name), {n})} - wanted
        return [let for n, let in self._own.items() if n in wanted]

    def _dealt(self, s: Stmt) -> Stmt | None:
        """Undo the dealing out of a loop's iterations: ``c = l; c < n; c += size`` is ``c = 0; c < n; c++``."""
        if not isinstance(s, Loop):
            return None
        inside = [e for x in statements(s.body) for e in expressions(x)]
        if any(self._varies(e) for e in (*inside, s.stop, s.step)):
            return None
        parts = split(_bare(self._inlined(s.start)), self._id)
        if parts is None or constant(parts[0]) != 1:
            return None
        base = convert(parts[1], s.dtype)
        one = Const(1, s.dtype)
        if constant(s.step) == self._size:
            return replace(s, start=base, step=one)
        if not self._is_global_size(s.step):
            return None
        block = Var(self._fresh(f"{s.name}0"), s.dtype)
        stop = arithmetic("+", block, Const(self._size, s.dtype))
        limit = Call("min", (stop, s.stop), common(stop.dtype, s.stop.dtype))
        inner = replace(s, start=block, stop=limit, step=one)
        return Loop(block.name, s.dtype, base, s.stop, s.step, (inner,))

    def _is_global_size(self, e: Expr) -> bool:
        e = _bare(e)
        if self._count is not None and equal(e, self._count):
            return True
        if isinstance(e, Call) and e.function == "get_global_size":
            return constant(e.args[0]) == self._dim
        groups = Var(f"{GROUPS}{self._dim}", "u64")
        return equal(e, arithmetic("*", groups, Const(self._size, "u64")))

    def _fresh(self, name: str) -> str:
        new, count = name, 1
        while new in self._taken:
            new, count = f"{name}_{count}", count + 1
        self._taken.add(new)
        return new

    # local memory

    def _store_local(self, s: Store) -> None:
        contents = self._arrays[s.buffer]
        index = simplify(self._inlined(s.index))
        if self._single or constant(index) is not None:
            self._store_one(s, contents, constant(index))
            return
        if self._reads(s, s.buffer) and (contents.sets or contents.partial or not self._own_place(s)):
            self._tree_step(s)
            return
        if not self._own_place(s):
            raise Unliftable(f"stores to local memory {s.buffer} at more than each work item's own place")
        value = s.value
        bare = _bare(value)
        if isinstance(bare, Var) and bare.name in self._shares:
            self._hold(s.buffer, contents, None, (bare.name, self._shares[bare.name]))
            return
        self._hold(s.buffer, contents, self._inlined(self._resolve(value)), None)

    def _hold(
        self, name: str, contents: Contents, value: Expr | None, partial: tuple[str, FoldOperator] | None
    ) -> None:
        """Let every item store at its own place."""
        for k, reader in contents.readers.items():
            if reader != k:
                raise Unliftable(f"lets work items race on {name}: a barrier is missing")
        self._loop_at = None
        contents.writers = {k: k for k in range(self._size)}
        contents.value, contents.partial, contents.sets = value, partial, []
        contents.op, contents.total = None, None

    def _own_place(self, s: Store) -> bool:
        index = _bare(simplify(self._inlined(s.index)))
        return isinstance(index, Var) and index.name == self._id

    def _reads(self, s: Stmt, array: str) -> bool:
        found = (e for x in statements((s,)) for e in expressions(x))
        return any(load.buffer == array for e in found for load in _loads(self._inlined(e)))

    def _store_one(self, s: Store, contents: Contents, at: int | None) -> None:
        """Let one item store one element, which all may read later."""
        value = self._resolve(s.value)
        if at != 0 or self._varies(value):
            raise Unliftable(f"stores to one place of local memory {s.buffer} in a way that is no reduction")
        if not self._single and contents.dtype:
            contents.readers.clear()
        contents.write_at(s.buffer, 0, 0)
        total = Var(s.buffer if contents.length == 1 else self._fresh(s.buffer), contents.dtype)
        self._out.append(Let(total.name, total.dtype, value))
        contents.value, contents.partial, contents.sets = None, None, []
        contents.op, contents.total = None, total

    def _tree_step(self, s: Stmt) -> None:
        inlined = _without_lets((map_expressions(s, self._inlined),))
        found = [step for x in inlined for step in steps(x, self._arrays)]
        for name in {step.array for step in found}:
            op = next(step.op for step in found if step.array == name)
            if self._arrays[name].total is None:
                self._begin_tree(name, op)
        run(found, self._arrays, self._id, self._size)

    def _begin_tree(self, name: str, op: FoldOperator) -> None:
        """Compute at once what the tree will have computed when it is done."""
        contents = self._arrays[name]
        if contents.partial is not None:
            variable, known = contents.partial
            if known != op:
                raise Unliftable(f"adds shares up with {known} and their sums with {op}")
            contents.total = Var(variable, self._dtypes.get(variable, contents.dtype))
            self._shares.pop(variable, None)
        elif contents.value is None:
            raise Unliftable(f"reads local memory {name} before it is written")
        else:
            total = Var(self._fresh(_TOTALS.get(op, "bits")), contents.dtype)
            self._out.append(Let(total.name, total.dtype, identity(op, total.dtype)))
            self._loop_at = None
            self._over_items(_guarded(Accumulate(total.name, op, contents.value), identity(op, total.dtype)))
            self._loop_at = None
            contents.total = total
        contents.partial = None

    # branches and loops

    def _if(self, s: If) -> None:
        touched = {x.buffer for x in statements((s,)) if isinstance(x, Store) and x.buffer in self._arrays}
        alone = self._alone(s.condition)
        in_tree = any(self._reads(s, n) for n in touched)
        if alone is not None and not s.otherwise and not (in_tree and self._unfinished(touched)):
            self._by_one(s, *alone)
        elif in_tree:
            self._tree_step(s)
        elif touched:
            self._store_chosen(s)
        elif any(isinstance(x, Barrier) for x in statements((s,))) or not self._varies(
            self._resolve(s.condition)
        ):
            condition = self._resolve(s.condition)
            if self._varies(condition):
                raise Unliftable("has a barrier that some work items do not reach")
            self._out.append(If(condition, self._nested(s.then), self._nested(s.otherwise)))
            self._loop_at = None
        else:
            self._emit(self._resolved(s))

    def _unfinished(self, names: Iterable[str]) -> bool:
        """Tell whether some array's first element does not hold the fold of all yet."""
        full = (1 << self._size) - 1
        held = [c for n in names if (c := self._arrays[n]).length != 1]
        return any(c.sets[0] != full if c.sets else c.total is None for c in held)

    def _nested(self, body: Body) -> Body:
        outer, self._out = self._out, []
        own, starts = dict(self._own), dict(self._starts)
        self._loop_at = None
        changed = {x.name for x in statements(body) if isinstance(x, Assign | Accumulate)}
        for name in changed & set(own):
            raise Unliftable(f"changes each work item's {name} in a branch or loop with barriers")
        for name in changed:
            self._starts.pop(name, None)
        self._block(body)
        inner, self._out = tuple(self._out), outer
        self._own, self._starts = own, {n: e for n, e in starts.items() if n not in changed}
        self._loop_at = None
        return inner

    def _alone(self, condition: Expr) -> tuple[int, Expr | None] | None:
        """Read ``l == 0 && rest``: the item that passes, and the rest."""
        parts = list(conjuncts(self._inlined(condition)))
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
            case Op(op="==", args=(a, b)):
                for x, y in ((a, b), (b, a)):
                    if isinstance(_bare(x), Var) and getattr(_bare(x), "name", "") == self._id:
                        return constant(y)
            case Op(op="<", args=(a, b)) if isinstance(_bare(a), Var) and constant(b) == 1:
                return 0 if getattr(_bare(a), "name", "") == self._id else None
            case Op(op="!", args=(Op(op="!=", args=(a, b)),)):
                return self._chosen(Op("==", (a, b), "i32"))
            case _:
                pass
        return None

    def _by_one(self, s: If, item: int, rest: Expr | None) -> None:
        """Run what one item alone does, once."""
        place: dict[str, Expr] = {self._id: Const(item, "i32")}
        own = self._own
        self._own = {
            n: replace(x, value=None if x.value is None else simplify(substitute(x.value, place)))
            for n, x in own.items()
        }
        body = tuple(
            map_expressions(x, lambda e: simplify(substitute(self._inlined(e), place))) for x in s.then
        )
        self._own = {n: x for n, x in own.items() if x.value is None}
        self._single, outer = True, self._single
        body = tuple(self._fold_of_all(x) for x in body)
        if rest is None:
            self._block(body)
        else:
            rest = self._resolve(simplify(substitute(rest, place)))
            self._out.append(If(rest, self._nested(body)))
        self._single, self._own, self._loop_at = outer, own, None

    def _fold_of_all(self, s: Stmt) -> Stmt:
        """Recognise one item's loop over all shares: ``for (j = 0; j < size; j++) s += t[j]``."""
        match s:
            case Loop(
                start=a, stop=b, step=c, body=(Accumulate(op=op, value=Load(buffer=n, index=i)) as acc,)
            ):
                pass
            case _:
                return s
        contents = self._arrays.get(n)
        if contents is None or contents.partial is None or contents.partial[1] != op:
            return s
        full = constant(a) == 0 and constant(b) == self._size and constant(c) == 1
        if not full or not equal(i, Var(s.name, s.dtype)) or any(w != 0 for w in contents.writers.values()):
            return s
        variable = contents.partial[0]
        self._shares.pop(variable, None)
        return replace(acc, value=Var(variable, self._dtypes[variable]))

    def _store_chosen(self, s: If) -> None:
        """Read ``if (c) t[l] = a; else t[l] = b;``, where without an else the element keeps its value."""
        match s:
            case If(condition=c, then=(Store() as yes,), otherwise=(Store() as no,)) if (
                yes.buffer == no.buffer
            ):
                other = no.value
            case If(condition=c, then=(Store() as yes,), otherwise=()):
                known = self._arrays[yes.buffer].value
                if known is None:
                    raise Unliftable(f"leaves some of local memory {yes.buffer} unset")
                other = known
            case _:
                raise Unliftable("uses local memory in a branch in a way that is no reduction")
        dtype = self._arrays[yes.buffer].dtype
        self._store_local(replace(yes, value=Select(c, yes.value, convert(other, dtype), dtype)))

    def _loop(self, s: Loop) -> None:
        if any(isinstance(x, Barrier) for x in statements(s.body)):
            if any(self._varies(e) for e in (s.start, s.stop, s.step)):
                raise Unliftable("has a barrier in a loop that work items run differently often")
            self._out.append(replace(s, body=self._nested(s.body)))
            for contents in self._arrays.values():
                contents.value, contents.partial, contents.sets, contents.total = None, None, [], None
            return
        shares = self._local_shares(s)
        self._emit(self._resolved(shares))

    def _local_shares(self, s: Loop) -> Loop:
        """Give ``t[l] += e`` inside a loop a variable: each item's element is its own until a barrier."""
        found = {x.buffer for x in statements(s.body) if isinstance(x, Store) and x.buffer in self._arrays}
        for name in found:
            contents = self._arrays[name]
            if contents.value is None:
                raise Unliftable(f"adds to local memory {name} before it is set")
            variable = Var(self._fresh(f"{name}_own"), contents.dtype)
            rewritten = tuple(self._as_accumulation(x, name, variable) for x in s.body)
            s = replace(s, body=rewritten)
            ops = {x.op for x in statements(s.body) if isinstance(x, Accumulate) and x.name == variable.name}
            if len(ops) != 1:
                raise Unliftable(f"uses local memory {name} in a loop in a way that is no reduction")
            op = ops.pop()
            self._dtypes[variable.name] = variable.dtype
            start = contents.value
            if self._varies(start):
                self._own[variable.name] = Let(variable.name, variable.dtype, start)
            else:
                self._out.append(Let(variable.name, variable.dtype, start))
                self._starts[variable.name] = start
            contents.value, contents.partial = None, (variable.name, op)
        return s

    def _as_accumulation(self, s: Stmt, array: str, variable: Var) -> Stmt:
        match s:
            case Store(buffer=b, value=v) if b == array:
                place = s.index
                found = fold(
                    v,
                    lambda e: isinstance(e, Load) and e.buffer == array and equal(e.index, place),
                    variable.dtype,
                )
                if found is None or not self._own_place(s):
                    raise Unliftable(f"uses local memory {array} in a loop in a way that is no reduction")
                return Accumulate(variable.name, found[0], found[1])
            case If(condition=c, then=t, otherwise=o):
                return If(
                    c,
                    tuple(self._as_accumulation(x, array, variable) for x in t),
                    tuple(self._as_accumulation(x, array, variable) for x in o),
                )
            case _:
                return s


def clamped(loop: Loop) -> Loop:
    """Move a test of the loop's variable against a bound, around its whole body, into the loop's end."""
    match loop.body:
        case (*lets, If(condition=c, then=then, otherwise=())) if all(isinstance(x, Let) for x in lets):
            pass
        case _:
            return loop
    stop, left = loop.stop, None
    for part in conjuncts(c):
        limit = _limit(part, loop)
        if limit is not None:
            stop = Call("min", (stop, limit), loop.dtype)
        else:
            left = part if left is None else Op("&&", (left, part), "i32")
    if stop is loop.stop:
        return loop
    inner = then if left is None else (If(left, then),)
    return replace(loop, stop=stop, body=(*lets, *inner))


def _limit(e: Expr, loop: Loop) -> Expr | None:
    """Read ``base + i < n`` as the end ``n - base`` of a loop over ``i``."""
    match e:
        case Op(op="<", args=(a, b)) | Op(op=">", args=(b, a)):
            pass
        case _:
            return None
    parts = split(a, loop.name)
    if parts is None or constant(parts[0]) != 1 or depends(b, {loop.name}):
        return None
    wide: Dtype = "i64" if {a.dtype, b.dtype} & {"i64", "u64"} else "i32"
    base = parts[1]
    limit = b if constant(base) == 0 else arithmetic("-", _signed(b, wide), _signed(base, wide))
    return convert(limit, loop.dtype)


def _signed(e: Expr, dtype: Dtype) -> Expr:
    """Make every variable signed, so that a difference below zero stays below zero."""
    return transform(
        e, lambda x: convert(x, dtype) if isinstance(x, Var) and x.dtype[0] == "u" else _retyped(x, dtype)
    )


def _retyped(e: Expr, dtype: Dtype) -> Expr:
    if isinstance(e, Op) and len(e.args) == 2 and e.op in {"+", "-", "*"}:
        return arithmetic(e.op, *e.args)
    if isinstance(e, Const) and e.dtype[0] == "u":
        return Const(e.value, dtype)
    return e.value if isinstance(e, Cast) and e.dtype[0] == "u" and e.value.dtype == dtype else e


def _guarded(s: Accumulate, neutral: Const) -> Stmt:
    """Write ``s += c ? x : 0`` as ``if (c) s += x``."""
    match s.value:
        case Select(condition=c, yes=y, no=Const(value=v)) if v == neutral.value:
            return If(c, (replace(s, value=y),))
        case _:
            return s


def _without_lets(body: Body) -> Body:
    """Put the values of variables in for them."""
    out: list[Stmt] = []
    known: dict[str, Expr] = {}
    for s in body:
        s = map_expressions(s, lambda e: substitute(e, known))
        match s:
            case Let(name=n, value=v) if v is not None:
                known = {**known, n: v}
            case If(condition=c, then=t, otherwise=o):
                out.append(If(c, _without_lets(t), _without_lets(o)))
            case _:
                out.append(s)
    return tuple(out)


def _combined(op: FoldOperator, a: Expr, b: Expr) -> Expr:
    if op == "max" or op == "min":
        dtype = common(a.dtype, b.dtype)
        return Call(op if dtype[0] in "iu" else f"f{op}", (a, b), dtype)
    return arithmetic(op, a, b)


def _bare(e: Expr) -> Expr:
    while isinstance(e, Cast):
        e = e.value
    return e


def _loads(e: Expr) -> Iterable[Load]:
    return (x for x in walk(e) if isinstance(x, Load))
