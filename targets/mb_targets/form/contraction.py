"""Evaluate sums of products by matrix multiplication: a large matmul in well under a second.

A loop that only sums ``a[p + k * s] * b[q + k * t]`` is a product of the matrix of all rows that start at
some ``p`` with the matrix of all columns that start at some ``q``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mb_targets.form.affine import constant, depends, split
from mb_targets.form.arithmetic import Values, wrapped
from mb_targets.form.nest import Accumulate, Cast, Expr, Load, Loop, Op

Evaluate = Callable[[Expr], Values]
Read = Callable[[Load, Values], Values]


def contract(loop: Loop, count: int, evaluate: Evaluate, read: Read) -> tuple[Accumulate, Values] | None:
    """Work out what a loop adds, for every item at once.

    Args:
        loop: The loop.
        count: Items.
        evaluate: Gives an expression's value, of shape ``()`` or ``(count,)``.
        read: Reads a buffer at an array of indices of any shape.

    Returns:
        The statement that the loop repeats and the sum of what it adds; None where the loop is of another
        kind, or where one matrix product would compute far more than the items need.
    """
    match loop.body:
        case (Accumulate(op="+", value=Op(op="*", args=(left, right))) as fold,) if constant(loop.step) == 1:
            pass
        case _:
            return None
    operands = [_operand(e, loop.name, evaluate) for e in (left, right)]
    start, stop = evaluate(loop.start), evaluate(loop.stop)
    if any(o is None for o in operands) or start.ndim or stop.ndim or stop <= start:
        return None
    steps = np.arange(int(start), int(stop))
    matrices: list[Values] = []
    places: list[Values] = []
    for _, base, stride in (o for o in operands if o is not None):
        rows, place = np.unique(np.broadcast_to(base, (count,)), return_inverse=True)
        matrices.append(rows[:, None] + steps[None, :] * stride)
        places.append(place)
    if len(matrices[0]) * len(matrices[1]) > 4 * count:
        return None
    a, b = (read(o[0], m) for o, m in zip(operands, matrices, strict=True) if o is not None)
    return fold, wrapped((a @ b.T)[places[0], places[1]], fold.value.dtype)


def _operand(e: Expr, loop: str, evaluate: Evaluate) -> tuple[Load, Values, Values] | None:
    """Split a load's subscript into where it starts and how far it moves in each iteration."""
    if isinstance(e, Cast) and e.lanes == 1:
        e = e.value
    if not isinstance(e, Load) or e.lanes != 1:
        return None
    parts = split(e.index, loop)
    if parts is None or depends(parts[0], (loop,)):
        return None
    stride = evaluate(parts[0])
    return None if stride.ndim else (e, evaluate(parts[1]), stride)
