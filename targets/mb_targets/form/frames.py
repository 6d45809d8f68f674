"""The items being evaluated at one place of a body, and their variables.

A frame holds one value of each of its variables for each of its items. A branch makes a frame of the items
that take it; a loop whose iterations do not depend on each other makes a frame with an item for each
iteration. An item of such a frame knows which of its parent's items it came from; those numbers never
decrease.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mb_targets.errors import RunError
from mb_targets.form.arithmetic import FOLDS, Values


@dataclass(slots=True)
class Frame:
    """Some items and their variables.

    Attributes:
        count: How many items.
        parent: The frame around; None for the whole launch.
        origin: Number of the parent's item for each item; None where they are the same.
        values: A value for each item by variable, or one for all: of shape ``()``, ``(count,)`` or, for
            vectors, ``(count, lanes)``.
    """

    count: int
    parent: Frame | None = None
    origin: Values | None = None
    values: dict[str, Values] = field(default_factory=dict)

    def find(self, name: str) -> tuple[Frame, Values | None]:
        """Find the frame that holds a variable, and the number of its item for each item here."""
        frame: Frame | None = self
        origin: Values | None = None
        while frame is not None:
            if name in frame.values:
                return frame, origin
            if frame.origin is not None:
                origin = frame.origin if origin is None else frame.origin[origin]
            frame = frame.parent
        raise RunError(f"reads {name} before it has a value")

    def read(self, name: str) -> Values:
        """Give a variable's value for each item."""
        frame, origin = self.find(name)
        value = frame.values[name]
        return value if origin is None or value.ndim == 0 else value[origin]

    def write(self, name: str, value: Values) -> None:
        """Change a variable of this frame or one around it."""
        frame, origin = self.find(name)
        kept = _spread(frame, name, value)
        if value.ndim == 1 and kept.ndim == 2:
            value = value[:, None]
        kept[slice(None) if origin is None else origin] = value

    def fold(self, name: str, op: str, value: Values) -> None:
        """Fold a value of each item into a variable; items that share it fold in turn."""
        frame, origin = self.find(name)
        fold = FOLDS[op]
        kept = _spread(frame, name, value)
        if value.ndim == 1 and kept.ndim == 2:
            value = value[:, None]
        value = np.broadcast_to(value, (self.count, *kept.shape[1:]))
        if origin is None:
            kept[...] = fold(kept, value)
            return
        if self.count == 0:
            return
        starts = np.flatnonzero(np.diff(origin, prepend=-1))
        targets = origin[starts]
        kept[targets] = fold(kept[targets], fold.reduceat(value, starts, axis=0))

    def taking(self, chosen: Values) -> Frame:
        """Make a frame of the items where a condition holds."""
        return Frame(int(np.count_nonzero(chosen)), self, np.flatnonzero(chosen))

    def repeated(self, counts: Values) -> tuple[Frame, Values]:
        """Make a frame with ``counts`` items for each item, and number them within each."""
        total = int(counts.sum())
        origin = np.repeat(np.arange(self.count), counts)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        return Frame(total, self, origin), np.arange(total) - first

    def whole(self) -> Values:
        """Give the number of the launch's item for each item."""
        frame: Frame = self
        origin: Values = np.arange(self.count)
        while frame.parent is not None:
            if frame.origin is not None:
                origin = frame.origin[origin]
            frame = frame.parent
        return origin


def _spread(frame: Frame, name: str, like: Values) -> Values:
    """Give a variable a value of its own for each item, and the shape of a vector if it gets one."""
    old = frame.values[name]
    shape = (frame.count, *(like.shape[1:] or old.shape[1:]))
    if old.shape != shape or not old.flags.owndata:
        old = np.array(np.broadcast_to(old[:, None] if old.ndim == 1 and len(shape) == 2 else old, shape))
        frame.values[name] = old
    return old
