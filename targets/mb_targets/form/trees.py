"""Reduction trees in local memory, recognised by running them on sets of items.

The elements of a local array start as one item's value each. Every step of a tree merges elements; when the
first element holds every item's value once, whatever the steps looked like, the array is folded. An access
that another item's write or read races with, because no barrier stands between, is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from mb_targets.form.affine import equal
from mb_targets.form.canonical import choice, conjuncts, fold
from mb_targets.form.dialect import Unliftable
from mb_targets.form.dtypes import is_integer
from mb_targets.form.nest import Cast, Const, Expr, FoldOperator, If, Load, Op, Stmt, Store, Var
from mb_targets.model import Dtype

IDEMPOTENT = frozenset({"max", "min", "&", "|"})
_LEAST: Mapping[str, int] = {"i8": -128, "i16": -(2**15), "i32": -(2**31), "i64": -(2**63)}
_MOST: Mapping[str, int] = {
    "i8": 127, "u8": 255, "i16": 2**15 - 1, "u16": 2**16 - 1, "i32": 2**31 - 1, "u32": 2**32 - 1,
    "i64": 2**63 - 1, "u64": 2**64 - 1,
}  # fmt: skip


def identity(op: FoldOperator, dtype: Dtype) -> Const:
    """Give the value that folding changes nothing."""
    whole = is_integer(dtype)
    match op:
        case "max":
            return Const(_LEAST.get(dtype, 0) if whole else float("-inf"), dtype)
        case "min":
            return Const(_MOST[dtype] if whole else float("inf"), dtype)
        case "&":
            return Const(-1 if dtype[0] == "i" else _MOST[dtype], dtype)
        case "*":
            return Const(1 if whole else 1.0, dtype)
        case _:
            return Const(0 if whole else 0.0, dtype)


@dataclass(slots=True)
class Contents:
    """What a local array holds.

    Attributes:
        value: The value each item stored at its own place, over the item's id; None once a tree changed it.
        partial: A variable of which every item stored its share, and the operator that adds the shares up.
        sets: Items that each element holds, as bits, once a tree runs.
        op: The tree's operator.
        total: The variable that holds the fold of all.
        length: Its elements, 0 where only the launch tells.
        writers: Who wrote each element since the last barrier.
        readers: Who read each element since the last barrier, None for several items.
        read_all: Whether items read elements that are not known, or all, since the last barrier.
    """

    dtype: Dtype
    length: int
    value: Expr | None = None
    partial: tuple[str, FoldOperator] | None = None
    sets: list[int] = field(default_factory=list)
    op: FoldOperator | None = None
    total: Var | None = None
    writers: dict[int, int] = field(default_factory=dict)
    readers: dict[int, int | None] = field(default_factory=dict)
    read_all: bool = False

    def barrier(self) -> None:
        """Order what was done before what follows."""
        self.writers.clear()
        self.readers.clear()
        self.read_all = False

    def clear(self) -> None:
        """Forget what it holds; who read and wrote it since the last barrier stays known."""
        self.value, self.partial, self.sets, self.op, self.total = None, None, [], None, None

    def hold(
        self, name: str, size: int, value: Expr | None, partial: tuple[str, FoldOperator] | None
    ) -> None:
        """Let every item of a group store at its own place."""
        if self.read_all or any(reader != k for k, reader in self.readers.items()):
            raise _race(name)
        self.clear()
        self.writers = {k: k for k in range(size)}
        self.value, self.partial = value, partial

    def complete(self, size: int) -> bool:
        """Tell whether the first element holds the fold of all."""
        return not self.sets or self.sets[0] == (1 << size) - 1

    def read_at(self, name: str, index: int | None, item: int | None) -> None:
        """Note that one item, or with None all, read an element, or with None any."""
        if index is None:
            if any(writer != item for writer in self.writers.values()):
                raise _race(name)
            self.read_all = True
            return
        if self.writers.get(index, item) != item:
            raise _race(name)
        self.readers[index] = item if self.readers.get(index, item) == item else None

    def write_at(self, name: str, index: int, item: int) -> None:
        """Note a write."""
        if self.read_all or self.writers.get(index, item) != item or self.readers.get(index, item) != item:
            raise _race(name)
        self.writers[index] = item


def _race(name: str) -> Unliftable:
    return Unliftable(f"lets work items race on {name}: a barrier is missing")


@dataclass(frozen=True, slots=True)
class Step:
    """``array[index] = array[index] op array[other] op ..`` where every guard holds."""

    array: str
    index: Expr
    others: tuple[Expr, ...]
    op: FoldOperator
    guards: tuple[Expr, ...]


def steps(s: Stmt, arrays: Mapping[str, Contents], guards: tuple[Expr, ...] = ()) -> Iterator[Step]:
    """Read a statement as steps of trees.

    Raises:
        Unliftable: It is something else.
    """
    match s:
        case If(condition=c, then=(Store(buffer=b, value=Load(buffer=same)) as store,), otherwise=()) if (
            b == same and b in arrays and (chosen := _chosen(c, store, arrays[b].dtype)) is not None
        ):
            yield replace(chosen, guards=(*guards, *chosen.guards))
        case If(condition=c, then=then, otherwise=()):
            for inner in then:
                yield from steps(inner, arrays, (*guards, c))
        case Store(buffer=b, index=i, value=v) if b in arrays:
            dtype = arrays[b].dtype
            found = fold(v, lambda e: isinstance(e, Load) and e.buffer == b and equal(e.index, i), dtype)
            if found is None:
                raise Unliftable(f"uses local memory {b} in a way that is no reduction tree")
            yield Step(b, i, tuple(_operands(found[1], found[0], b)), found[0], guards)
        case _:
            raise Unliftable("mixes a reduction tree with other work")


def _chosen(condition: Expr, store: Store, dtype: Dtype) -> Step | None:
    """Read ``if (guard && t[k] > t[l]) t[l] = t[k];``."""
    assert isinstance(store.value, Load)
    parts = list(conjuncts(condition))
    for k, part in enumerate(parts):
        op = choice(part, store.value, Load(store.buffer, store.index, dtype))
        if op is not None:
            guards = tuple(parts[:k] + parts[k + 1 :])
            return Step(store.buffer, store.index, (store.value.index,), op, guards)
    return None


def _operands(e: Expr, op: FoldOperator, array: str) -> Iterator[Expr]:
    match e:
        case Load(buffer=b, index=i) if b == array:
            yield i
        case Op(op=inner, args=(x, y)) if inner == op:
            yield from _operands(x, op, array)
            yield from _operands(y, op, array)
        case _:
            raise Unliftable(f"uses local memory {array} in a way that is no reduction tree")


def run(found: list[Step], arrays: Mapping[str, Contents], item: str, size: int) -> None:
    """Let every item of a group carry out steps that no barrier separates."""
    for s in found:
        contents = arrays[s.array]
        if not contents.sets:
            contents.sets = [1 << k for k in range(size)]
        if contents.op not in {None, s.op}:
            raise Unliftable(f"folds {s.array} with two operators")
        contents.op = s.op
        before = list(contents.sets)
        for k in range(size):
            names = {item: k}
            if all(compute(g, names) for g in s.guards):
                _merge(s, contents, before, names, k)


def _merge(s: Step, contents: Contents, before: list[int], names: Mapping[str, int], k: int) -> None:
    target = compute(s.index, names)
    places = [compute(i, names) for i in s.others]
    if any(not 0 <= p < len(before) for p in (target, *places)):
        raise Unliftable(f"reaches outside local memory {s.array}")
    for p in (target, *places):
        contents.read_at(s.array, p, k)
    contents.write_at(s.array, target, k)
    merged = contents.sets[target]
    for p in places:
        if merged & before[p] and s.op not in IDEMPOTENT:
            raise Unliftable(f"folds an element of {s.array} in twice")
        merged |= before[p]
    contents.sets[target] = merged


def compute(e: Expr, names: Mapping[str, int]) -> int:
    """Work out a whole expression over the item's id.

    Raises:
        Unliftable: It depends on something else.
    """
    match e:
        case Const(value=v):
            return int(v)
        case Var(name=n) if n in names:
            return names[n]
        case Cast(value=v) if is_integer(e.dtype) and is_integer(v.dtype):
            return compute(v, names)
        case Op(op="&&", args=(a, b)):
            return int(bool(compute(a, names) and compute(b, names)))
        case Op(op="||", args=(a, b)):
            return int(bool(compute(a, names) or compute(b, names)))
        case Op(op=op, args=args):
            return _operate(op, [compute(a, names) for a in args])
    raise Unliftable(
        "has a reduction tree whose steps depend on more than the work item's place in its group"
    )


def _operate(op: str, v: list[int]) -> int:
    match op:
        case "neg":
            return -v[0]
        case "!":
            return int(not v[0])
        case "~":
            return ~v[0]
        case "+":
            return v[0] + v[1]
        case "-":
            return v[0] - v[1]
        case "*":
            return v[0] * v[1]
        case "/" if v[1] > 0 <= v[0]:
            return v[0] // v[1]
        case "%" if v[1] > 0 <= v[0]:
            return v[0] % v[1]
        case "<":
            return int(v[0] < v[1])
        case "<=":
            return int(v[0] <= v[1])
        case ">":
            return int(v[0] > v[1])
        case ">=":
            return int(v[0] >= v[1])
        case "==":
            return int(v[0] == v[1])
        case "!=":
            return int(v[0] != v[1])
        case "&":
            return v[0] & v[1]
        case "|":
            return v[0] | v[1]
        case "^":
            return v[0] ^ v[1]
        case "<<" if 0 <= v[1] < 64:
            return v[0] << v[1]
        case ">>" if 0 <= v[1] < 64:
            return v[0] >> v[1]
    raise Unliftable("has a reduction tree whose steps cannot be followed")
