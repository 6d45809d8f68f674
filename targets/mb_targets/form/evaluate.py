"""Run a form without a device: the slow reference, in float64, for lifted and for scheduled forms.

All items run in step, statement by statement. Iterations of a loop that do not depend on each other run at
once.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mb_targets.errors import RunError
from mb_targets.form import arithmetic
from mb_targets.form.affine import equal
from mb_targets.form.arithmetic import FOLDS, Values
from mb_targets.form.contraction import contract
from mb_targets.form.dtypes import is_integer
from mb_targets.form.frames import Frame
from mb_targets.form.nest import (
    Accumulate,
    Array,
    Assign,
    Axis,
    Barrier,
    Call,
    Cast,
    Const,
    Expr,
    Fold,
    Form,
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
    Tree,
    Var,
)
from mb_targets.form.traverse import expressions, loads, statements, walk
from mb_targets.model import Dtype

_MOST_AT_ONCE = 1 << 22


def evaluate(
    form: Form,
    scalars: Mapping[str, float],
    buffers: Mapping[str, Values],
    global_size: Sequence[int],
    local_size: Sequence[int] | None = None,
) -> dict[str, Values]:
    """Run a form.

    Args:
        form: Lifted or scheduled.
        scalars: Value of each scalar parameter.
        buffers: Elements of each buffer, flat; they are not changed.
        global_size: Items of the launch by dimension.
        local_size: Items of a group; needed for tile axes.

    Returns:
        The elements of each written buffer: floating ones in float64, whole ones in int64.

    Raises:
        RunError: An element outside a buffer is read or written; the message names the buffer.
    """
    with np.errstate(all="ignore"):
        launch = _Launch(form, scalars, global_size, local_size)
        run = _Run(form, buffers, launch)
        if launch.root.count:
            run.body(form.body, launch.root)
        return {b.name: run.memory[b.name].data for b in form.buffers if b.written}


@dataclass(slots=True)
class _Memory:
    """A buffer, or an array of which each item (or group) has its own row."""

    data: Values
    dtype: Dtype
    length: int
    frame: Frame | None = None
    local: bool = False


class _Launch:
    """The items of a launch."""

    def __init__(
        self,
        form: Form,
        scalars: Mapping[str, float],
        global_size: Sequence[int],
        local_size: Sequence[int] | None,
    ) -> None:
        self.global_size = (*global_size, 1, 1, 1)[:3]
        self.local_size = (*(local_size or form.local_size or ()), 1, 1, 1)[:3]
        self.original = (*(form.local_size or self.local_size), 1, 1, 1)[:3]
        self.root = Frame(1)
        for v in form.scalars:
            self.root.values[v.name] = arithmetic.literal(scalars[v.name], v.dtype)
        counts = {a.dim: self._count(a, form) for a in form.axes}
        shared = any(a.level == "tile" for a in form.axes)
        items = [self.local_size[d] if shared else 1 for d in range(3)]
        groups = [counts.get(d, 1) for d in range(3)]
        # dimension 0 runs fastest, the items of a group follow each other
        shape = (*reversed(groups), *reversed(items))
        self.root.count = int(np.prod(shape))
        grid = (
            np.unravel_index(np.arange(self.root.count), shape)
            if self.root.count
            else (np.zeros(0, int),) * 6
        )
        self.group = [grid[2 - d] for d in range(3)]
        self.local = [grid[5 - d] for d in range(3)]
        self.group_number = np.arange(self.root.count) // max(int(np.prod(items)), 1)
        self.group_count = int(np.prod(groups))
        for a in form.axes:
            self.root.values[a.name] = (self.group[a.dim] * a.block).astype(np.int64)

    def _count(self, axis: Axis, form: Form) -> int:
        dim = axis.dim if axis.source is None else axis.source
        if axis.extent is not None:
            run = _Run(form, {}, self)
            extent = int(run.expression(axis.extent, self.root))
        else:
            extent = self.global_size[dim]
            if axis.level == "group" or (axis.level == "tile" and form.local_size is not None):
                extent //= self.original[dim]
        return max(-(-extent // axis.block), 0)


class _Run:
    """Runs statements on frames."""

    def __init__(self, form: Form, buffers: Mapping[str, Values], launch: _Launch) -> None:
        self._launch = launch
        self.memory = {
            b.name: _Memory(
                arithmetic.held(buffers[b.name].reshape(-1), b.dtype), b.dtype, buffers[b.name].size
            )
            for b in form.buffers
            if b.name in buffers
        }
        self._buffers = frozenset(self.memory)

    def body(self, body: tuple[Stmt, ...], frame: Frame) -> None:
        """Run statements in order."""
        for s in body:
            self._statement(s, frame)

    def _statement(self, s: Stmt, frame: Frame) -> None:
        match s:
            case Let(name=n, dtype=d, value=v):
                undefined = np.asarray(0 if is_integer(d) else np.nan)
                value = undefined if v is None else self._wide(v, s.lanes, frame)
                frame.values[n] = np.array(value, copy=not isinstance(v, Op | Load) or None)
            case Assign(name=n, value=v):
                frame.write(n, np.asarray(self.expression(v, frame)))
            case Accumulate(name=n, op=op, value=v):
                value = self._wide(v, v.lanes, frame)
                frame.fold(n, op, np.broadcast_to(value, (frame.count,)) if value.ndim == 0 else value)
            case Store():
                self._store(s, frame)
            case If(condition=c, then=then, otherwise=otherwise):
                chosen = self.expression(c, frame) != 0
                self._branch(chosen, then, frame)
                self._branch(~chosen, otherwise, frame)
            case Loop():
                self._loop(s, frame)
            case Array(name=n, dtype=d, length=length, space=space):
                local = space == "local"
                rows = self._launch.group_count if local else frame.count
                data = np.full((rows, length), 0 if is_integer(d) else np.nan)
                self.memory[n] = _Memory(data, d, length, frame, local)
            case Tree():
                self._tree(s)
            case Barrier():
                pass  # all items run in step

    def _branch(self, chosen: Values, body: tuple[Stmt, ...], frame: Frame) -> None:
        if body and chosen.any():
            self.body(body, Frame(frame.count, frame) if chosen.all() else frame.taking(chosen))

    def _loop(self, loop: Loop, frame: Frame) -> None:
        summed = None
        if all(x.buffer in self._buffers for x in loads(loop.body)):  # of an array each item has its own row
            summed = contract(loop, frame.count, lambda e: self.expression(e, frame), self._gather)
        if summed is not None:
            frame.fold(summed[0].name, "+", summed[1])
            return
        start, stop, step = (self.expression(e, frame) for e in (loop.start, loop.stop, loop.step))
        counts = np.broadcast_to(np.maximum(-((start - stop) // step), 0), (frame.count,))
        longest = int(counts.max(initial=0))
        at_once = max(_MOST_AT_ONCE // max(frame.count, 1), 1) if independent(loop) else 1
        for first in range(0, longest, at_once):
            here, number = frame.repeated(np.clip(counts - first, 0, at_once))
            begin, by = (v[here.origin] if v.ndim else v for v in (start, step))
            here.values[loop.name] = arithmetic.wrapped(begin + (number + first) * by, loop.dtype)
            self.body(loop.body, here)

    def _store(self, s: Store, frame: Frame) -> None:
        memory = self.memory[s.buffer]
        lanes = s.value.lanes
        value = self.expression(s.value, frame)
        place = self._place(memory, s.buffer, self.expression(s.index, frame), lanes, frame, "writes")
        if value.ndim == 1 and lanes > 1:
            value = value[:, None]
        value = arithmetic.cast(value, s.value.dtype, memory.dtype)
        memory.data[place] = np.broadcast_to(value, np.broadcast_shapes(value.shape, place[-1].shape))

    def _load(self, e: Load, frame: Frame) -> Values:
        memory = self.memory[e.buffer]
        index = self.expression(e.index, frame)
        found: Values = memory.data[self._place(memory, e.buffer, index, e.lanes, frame, "reads")]
        return found

    def _gather(self, e: Load, index: Values) -> Values:
        """Read a buffer, which all items share, at indices that no item of a frame stands for."""
        memory = self.memory[e.buffer]
        low, high = int(index.min(initial=0)), int(index.max(initial=0))
        if low < 0 or high >= memory.length:
            wrong = low if low < 0 else high
            raise RunError(f"reads {e.buffer}[{wrong}], outside its {memory.length} elements")
        found: Values = memory.data[index]
        return found

    def _place(
        self, memory: _Memory, name: str, index: Values, lanes: int, frame: Frame, verb: str
    ) -> tuple[Values, ...]:
        """Check an index, and give it with the row of the array that each item has."""
        if index.ndim == 0:
            index = np.broadcast_to(index, (frame.count,))
        low, high = int(index.min(initial=0)), int(index.max(initial=0)) + lanes - 1
        if low < 0 or (high >= memory.length and frame.count):
            wrong = low if low < 0 else high
            raise RunError(f"{verb} {name}[{wrong}], outside its {memory.length} elements")
        if lanes > 1:
            index = index[:, None] + np.arange(lanes)
        if memory.frame is None:
            return (index,)
        rows = self._launch.group_number[frame.whole()] if memory.local else self._rows(memory.frame, frame)
        return (rows[:, None] if lanes > 1 else rows), index

    def _rows(self, owner: Frame, frame: Frame) -> Values:
        origin: Values = np.arange(frame.count)
        while frame is not owner:
            if frame.parent is None:
                raise RunError("an array is used outside the block that declares it")
            if frame.origin is not None:
                origin = frame.origin[origin]
            frame = frame.parent
        return origin

    def _tree(self, s: Tree) -> None:
        data = self.memory[s.array].data
        data[:, 0] = FOLDS[s.op].reduce(data[:, : s.items], axis=1)

    def _wide(self, e: Expr, lanes: int, frame: Frame) -> Values:
        value = self.expression(e, frame)
        if lanes > 1 and value.ndim == 1:
            return np.repeat(value[:, None], lanes, axis=1)
        return value

    def expression(self, e: Expr, frame: Frame) -> Values:
        """Evaluate an expression for each item."""
        match e:
            case Const(value=v, dtype=d):
                return arithmetic.literal(v, d)
            case Var(name=n):
                return frame.read(n)
            case Load():
                return self._load(e, frame)
            case Op(op="&&" | "||" as op, args=(a, b), lanes=1):
                return self._logical(op, a, b, frame)
            case Op(op=op, args=args):
                values = [self._wide(a, e.lanes, frame) for a in args]
                return arithmetic.operate(op, values, [a.dtype for a in args])
            case Call(function=f, args=args):
                return self._call(f, e, frame)
            case Select():
                return self._select(e, frame)
            case Cast(value=v, dtype=d):
                return arithmetic.cast(self._wide(v, e.lanes, frame), v.dtype, d)
            case Pack(items=items):
                columns = [np.broadcast_to(self.expression(x, frame), (frame.count,)) for x in items]
                return np.stack(columns, axis=1)
            case Lane(vector=v, number=k):
                whole = self.expression(v, frame)
                return whole[:, k] if whole.ndim == 2 else whole
            case Fold(op=op, vector=v):
                whole = np.broadcast_to(self._wide(v, v.lanes, frame), (frame.count, v.lanes))
                return np.asarray(FOLDS[op].reduce(whole, axis=1))

    def _call(self, function: str, e: Call, frame: Frame) -> Values:
        if function.startswith("get_"):
            dim = int(self.expression(e.args[0], frame))
            return self._identity(function, dim, frame)
        values = [self._wide(a, e.lanes, frame) for a in e.args]
        if e.dtype == "u64" and function in {"min", "max"}:
            values = [v.view(np.uint64) for v in values]
            return arithmetic.call(function, values, e.dtype).view(np.int64)
        return np.asarray(arithmetic.call(function, values, e.dtype))

    def _identity(self, function: str, dim: int, frame: Frame) -> Values:
        launch = self._launch
        fixed = {"get_global_size": launch.global_size[dim], "get_local_size": launch.local_size[dim]}
        if function in fixed:
            return np.asarray(fixed[function])
        by_item = {"get_local_id": launch.local[dim], "get_group_id": launch.group[dim]}
        if function not in by_item:
            raise RunError(f"calls {function}")
        found: Values = by_item[function][frame.whole()]
        return found

    def _logical(self, op: str, a: Expr, b: Expr, frame: Frame) -> Values:
        """Evaluate the right side only where the left one leaves it open."""
        first = np.broadcast_to(self.expression(a, frame) != 0, (frame.count,))
        unsettled = first if op == "&&" else ~first
        result = first.astype(np.int64)
        if unsettled.any():
            inner = Frame(frame.count, frame) if unsettled.all() else frame.taking(unsettled)
            result[unsettled] = self.expression(b, inner) != 0
        return result

    def _select(self, e: Select, frame: Frame) -> Values:
        condition = self.expression(e.condition, frame)
        if e.condition.lanes > 1:
            yes, no = (self._wide(x, e.lanes, frame) for x in (e.yes, e.no))
            return np.where(condition != 0, yes, no)
        if condition.ndim == 0:
            chosen = e.yes if condition else e.no
            return arithmetic.cast(self._wide(chosen, e.lanes, frame), chosen.dtype, e.dtype)
        shape = (frame.count, e.lanes) if e.lanes > 1 else (frame.count,)
        result = np.zeros(shape, np.int64 if is_integer(e.dtype) else np.float64)
        for chosen, holds in ((e.yes, condition != 0), (e.no, condition == 0)):
            if holds.any():
                value = self._wide(chosen, e.lanes, frame.taking(holds))
                result[holds] = arithmetic.cast(value, chosen.dtype, e.dtype)
        return result


def independent(loop: Loop) -> bool:
    """Tell whether the iterations of a loop may run at once: none reads what another changes."""
    inside = list(statements(loop.body))
    own = {s.name for s in inside if isinstance(s, Let | Loop)}
    if any(isinstance(s, Barrier | Tree | Array) for s in inside):
        return False
    if any(isinstance(s, Assign) and s.name not in own for s in inside):
        return False
    folded = {(s.name, s.op) for s in inside if isinstance(s, Accumulate) and s.name not in own}
    names = {n for n, _ in folded}
    read = {x.name for s in inside for e in expressions(s) for x in walk(e) if isinstance(x, Var)}
    if len(names) != len(folded) or names & read:
        return False
    stores = [s for s in inside if isinstance(s, Store)]
    return all(
        equal(load.index, s.index) and load.lanes == s.value.lanes
        for load, s in itertools.product(loads(loop.body), stores)
        if load.buffer == s.buffer
    )
