"""Work out the NDRange that a scheduled form needs, in terms of the original's."""

from __future__ import annotations

import re

from mb_targets.form.nest import Axis, Form
from mb_targets.form.schedule import Schedule
from mb_targets.model import LaunchChange

Sizes = tuple[int, ...]


def launch_change(
    form: Form, new: Form, dims: int, plan: Schedule, local: Sizes | None, local_chosen: bool
) -> LaunchChange | None:
    """Work out the NDRange.

    Args:
        form: The original's form.
        new: The scheduled form.
        dims: Dimensions of the original's NDRange.
        plan: The schedule.
        local: The chosen work-group size; None leaves it to the runtime.
        local_chosen: Whether it was chosen.

    Returns:
        The change, None when the NDRange stays as it is.
    """
    sizes = [f"G{d}" for d in range(dims)]
    multiples = [1, 1, 1]
    if plan.group:
        local = (plan.group,) + (1,) * (dims - 1)
    elif plan.halo:
        local = plan.halo
    elif plan.stage:
        local = (plan.stage[0], plan.stage[0] if len(plan.stage) == 3 else plan.stage[1])
    for axis in new.axes:
        dim = source(axis)
        size = local[axis.dim] if local else 1
        tiles = _tiles(form, axis, plan)
        if axis.level == "tile":
            sizes[axis.dim] = tiles if size == 1 else f"{_atom(tiles)} * {size}"
            continue
        sizes[axis.dim] = tiles if size == 1 else f"{_ceil_div(tiles, size)} * {size}"
        if axis.extent is None:
            multiples[dim] = axis.block * size
    if sizes == [f"G{d}" for d in range(dims)] and not local_chosen:
        return None
    return LaunchChange(tuple(sizes), local, (multiples[0], multiples[1], multiples[2]))


def rounded(dims: int, local: Sizes | None, guarded: bool) -> LaunchChange:
    """Change the work-group size alone; where the kernel checks its bounds, sizes are rounded up to it."""
    shape = local or (1,) * dims
    sizes = [f"G{d}" for d in range(dims)]
    if guarded:
        return LaunchChange(
            tuple(s if n == 1 else f"{_ceil_div(s, n)} * {n}" for s, n in zip(sizes, shape, strict=True)),
            local,
        )
    x, y, z = (*shape, 1, 1)[:3]
    return LaunchChange(tuple(sizes), local, (x, y, z))


def source(axis: Axis) -> int:
    """Give the dimension of the original's NDRange that an axis came from."""
    return axis.dim if axis.source is None else axis.source


def _tiles(form: Form, axis: Axis, plan: Schedule) -> str:
    """Count the items (for tile axes, the groups) along an axis."""
    if plan.partials:
        return str(plan.partials)
    dim = source(axis)
    old = next(a for a in form.axes if a.dim == dim)
    count = f"G{dim}" if old.level == "item" else f"G{dim} // L{dim}"
    return count if axis.block == 1 else _ceil_div(count, axis.block)


def _ceil_div(count: str, by: int) -> str:
    return f"({_atom(count)} + {by - 1}) // {by}"


def _atom(count: str) -> str:
    return count if re.fullmatch(r"\w+", count) or re.fullmatch(r"\([^()]*\) // \d+", count) else f"({count})"
