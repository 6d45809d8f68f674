"""The form itself: a small typed loop-nest language that kernels are lifted to and printed from.

A form is a set of parallel axes (work items or work groups) around a body of statements. All the items of
all axes are independent. Names are those of the user's code. Every expression knows its dtype and its lanes;
lanes above one appear only after a schedule has vectorized something. Boolean values have dtype ``i32``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from mb_targets.model import Dtype

Operator = Literal[
    "+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "&", "|", "^", "<<", ">>",
    "neg", "!", "~",
]  # fmt: skip
FoldOperator = Literal["+", "*", "max", "min", "&", "|", "^"]


@dataclass(frozen=True, slots=True)
class Const:
    """A literal. ``text`` is how the user wrote it, empty for one that we made."""

    value: float
    dtype: Dtype
    text: str = ""
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Var:
    """A scalar parameter, an axis, a loop variable or a local variable."""

    name: str
    dtype: Dtype
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Load:
    """Element ``index`` of a buffer or array; with lanes, that many contiguous elements from it."""

    buffer: str
    index: Expr
    dtype: Dtype
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Op:
    """An operator on one or two arguments; a scalar argument of a vector operator is broadcast."""

    op: Operator
    args: tuple[Expr, ...]
    dtype: Dtype
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Call:
    """A function without side effects, by its OpenCL name: ``exp``, ``fmax``, ``mad``, ``native_exp``."""

    function: str
    args: tuple[Expr, ...]
    dtype: Dtype
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Select:
    """``condition ? yes : no``."""

    condition: Expr
    yes: Expr
    no: Expr
    dtype: Dtype
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion of value; with more lanes than its value, a broadcast."""

    value: Expr
    dtype: Dtype
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Pack:
    """A vector made of scalars."""

    items: tuple[Expr, ...]
    dtype: Dtype

    @property
    def lanes(self) -> int:
        """As many as there are items."""
        return len(self.items)


@dataclass(frozen=True, slots=True)
class Lane:
    """One element of a vector."""

    vector: Expr
    number: int
    dtype: Dtype
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Fold:
    """A vector folded to a scalar by an operator."""

    op: FoldOperator
    vector: Expr
    dtype: Dtype
    lanes: int = 1


Expr: TypeAlias = Const | Var | Load | Op | Call | Select | Cast | Pack | Lane | Fold


@dataclass(frozen=True, slots=True)
class Let:
    """Declare a variable; ``value`` None leaves it undefined."""

    name: str
    dtype: Dtype
    value: Expr | None
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Assign:
    """Give a variable a new value."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Accumulate:
    """Fold a value into a variable: ``name = name op value``. A loop may reorder these among themselves."""

    name: str
    op: FoldOperator
    value: Expr


@dataclass(frozen=True, slots=True)
class Store:
    """Write an element of a buffer or array; the value's lanes go to contiguous elements."""

    buffer: str
    index: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Loop:
    """``for (name = start; name < stop; name += step)``; step is a positive expression."""

    name: str
    dtype: Dtype
    start: Expr
    stop: Expr
    step: Expr
    body: tuple[Stmt, ...]
    unroll: int = 1


@dataclass(frozen=True, slots=True)
class If:
    """Do one body or the other."""

    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class Array:
    """Declare an array of constant length in private or local memory; a schedule's work, never a lifter's."""

    name: str
    dtype: Dtype
    length: int
    space: Literal["private", "local"]


@dataclass(frozen=True, slots=True)
class Barrier:
    """A work-group barrier on local or global memory; a schedule's work, never a lifter's."""

    space: Literal["local", "global"] = "local"


@dataclass(frozen=True, slots=True)
class Tree:
    """Fold the first ``items`` elements of a local array into its first, the items of a group together.

    Every item must have stored its element and reached a barrier; the result may be read by all at once
    afterwards. A schedule's work.

    Attributes:
        array: The local array, as long as the group.
        item: The variable that holds the item's place in the group.
        items: A power of two.
    """

    array: str
    item: str
    op: FoldOperator
    items: int
    dtype: Dtype


Stmt: TypeAlias = Let | Assign | Accumulate | Store | Loop | If | Array | Barrier | Tree


@dataclass(frozen=True, slots=True)
class Axis:
    """A parallel dimension.

    Attributes:
        name: The variable that holds the id.
        dim: Dimension of the NDRange.
        level: ``item`` runs over global ids, ``group`` over work groups (the items of a group were folded
            into loops of the body), ``tile`` over work groups whose items share the ``block`` values of a
            tile (a schedule's work; the body then says what each item does).
        extent: How many there are, over the scalar parameters: from a guard in the kernel or from the launch
            spec. None where only the NDRange tells.
        guarded: Whether the extent came from a guard in the kernel.
        block: Consecutive values that one item takes; ``name`` is the first of them. Schedules set it.
        source: Dimension of the original's NDRange that it came from; None where that is ``dim``.
    """

    name: str
    dtype: Dtype
    dim: int
    level: Literal["item", "group", "tile"]
    extent: Expr | None
    guarded: bool = False
    block: int = 1
    source: int | None = None


@dataclass(frozen=True, slots=True)
class Buffer:
    """A pointer parameter: its element type, and whether the body reads and writes it."""

    name: str
    dtype: Dtype
    space: Literal["global", "constant"]
    read: bool
    written: bool


@dataclass(frozen=True, slots=True)
class Form:
    """A lifted kernel.

    Attributes:
        name: The kernel's.
        buffers: Pointer parameters in order.
        scalars: Scalar parameters in order.
        axes: Parallel dimensions, innermost (dimension 0) first.
        body: What each item does.
        local_size: The original's work-group size by dimension, where the form is right for that alone;
            None where it is right for any.
    """

    name: str
    buffers: tuple[Buffer, ...]
    scalars: tuple[Var, ...]
    axes: tuple[Axis, ...]
    body: tuple[Stmt, ...]
    local_size: tuple[int, ...] | None = None

    def buffer(self, name: str) -> Buffer | None:
        """Find a buffer by name; None for an array of the body."""
        return next((b for b in self.buffers if b.name == name), None)


@dataclass(frozen=True, slots=True)
class DoesNotLift:
    """Why a kernel has no form; the reason is shown to the user."""

    reason: str
