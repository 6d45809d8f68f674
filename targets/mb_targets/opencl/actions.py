"""The action catalogue of OpenCL: what may be done to a kernel here, and what it makes of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mb_targets.form.affine import constant
from mb_targets.form.dependence import Declined
from mb_targets.form.nest import Axis, DoesNotLift, Form
from mb_targets.form.schedule import STEPS, Schedule, schedule
from mb_targets.form.schedule import apply as carry_out
from mb_targets.model import (
    Action,
    Device,
    Kernel,
    LaunchChange,
    LaunchSpec,
    NotApplicable,
    Proposal,
    Variant,
)
from mb_targets.opencl import catalogue
from mb_targets.opencl import print as printer
from mb_targets.opencl.lift import lift

LOCAL = frozenset({"local", "keep_launch", "restrict", "flags"})
"""Ids of the actions that are no steps of a schedule."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The actions of a chain that are no steps of a schedule."""

    local: tuple[int, ...] | None = None
    local_set: bool = False
    keep_launch: bool = False
    restrict: bool = False
    flags: tuple[str, ...] = ()


def choices(chain: Sequence[Action]) -> Choices:
    """Read them; a later one overrides."""
    values: dict[str, object] = {}
    for a in chain:
        match a.id:
            case "local":
                values |= {"local_set": True}
                values["local"] = None if a.parameters == ("none",) else tuple(map(int, a.parameters))
            case "keep_launch" | "restrict":
                values[a.id] = True
            case "flags":
                values["flags"] = a.parameters
            case _:
                pass
    return Choices(**values)  # type: ignore[arg-type]


@lru_cache(maxsize=64)
def lifted(kernel: Kernel, launch: LaunchSpec) -> Form | DoesNotLift:
    """Lift once for each kernel and launch."""
    return lift(kernel, launch)


def propose(kernel: Kernel, launch: LaunchSpec, device: Device, variant: Variant) -> Sequence[Proposal]:
    """List what the catalogue holds to be possible now."""
    return catalogue.propose(lifted(kernel, launch), kernel, launch, device, variant.chain)


def apply(
    kernel: Kernel, launch: LaunchSpec, device: Device, variant: Variant, action: Action
) -> Variant | NotApplicable:
    """Apply an action: replay the whole chain on the lifted form, or edit the text where it does not lift."""
    if action.id not in STEPS | LOCAL:
        return NotApplicable(f"there is no action {action.id}")
    chain = (*variant.chain, action)
    form = lifted(kernel, launch)
    structural = any(a.id in STEPS or a.id == "keep_launch" for a in chain)
    try:
        if not structural:
            return _textual(kernel, launch, chain)
        if isinstance(form, DoesNotLift):
            return NotApplicable(f"the kernel does not lift: {form.reason}")
        return _structural(kernel, launch, form, chain)
    except Declined as e:
        return NotApplicable(str(e))


def _structural(kernel: Kernel, launch: LaunchSpec, form: Form, chain: tuple[Action, ...]) -> Variant:
    chosen = choices(chain)
    folded = frozenset(a.name for a in launch.arguments if a.fold == "sum")
    plan = schedule(chain, folded)
    if chosen.keep_launch and (plan.stage or plan.group):
        raise Declined("local tiles need their own work-group size")
    whole = frozenset() if chosen.keep_launch else frozenset(a.name for a in form.axes if a.extent is None)
    new = carry_out(form, plan, whole)
    change = None if chosen.keep_launch else launch_change(form, new, launch, chosen, plan)
    rounded = change is not None and change.local_size is not None and any(n > 1 for n in change.local_size)
    style = printer.Style(chosen.keep_launch, rounded)
    text = f"{signature(kernel, chosen.restrict)}\n{printer.body(new, style)}"
    source = kernel.source[: kernel.start] + text + kernel.source[kernel.end :]
    if text == kernel.text and change is None:
        raise Declined("it changes nothing")
    return Variant(source, kernel.name, chain, change, chosen.flags)


def _textual(kernel: Kernel, launch: LaunchSpec, chain: tuple[Action, ...]) -> Variant:
    """Variants that keep the body as it stands: work-group size, qualifiers, compiler flags."""
    chosen = choices(chain)
    text = kernel.text
    if chosen.restrict:
        head = signature(kernel, restrict=True)
        text = head + "\n" + text[text.index("{") :]
    change = None
    if chosen.local_set:
        dims = len(launch.global_size)
        rounding = tuple(f"G{d}" for d in range(dims))
        multiples = tuple(chosen.local or ()) + (1,) * (3 - len(chosen.local or ()))
        change = LaunchChange(rounding, chosen.local, (multiples[0], multiples[1], multiples[2]))
    source = kernel.source[: kernel.start] + text + kernel.source[kernel.end :]
    if source == kernel.source and change is None and not chosen.flags:
        raise Declined("it changes nothing")
    return Variant(source, kernel.name, chain, change, chosen.flags)


def launch_change(
    form: Form, new: Form, launch: LaunchSpec, chosen: Choices, plan: Schedule
) -> LaunchChange | None:
    """Work out the NDRange of a scheduled form from the original's."""
    dims = len(launch.global_size)
    sizes = [f"G{d}" for d in range(dims)]
    if plan.stage:
        items = (plan.stage[0], plan.stage[0] if len(plan.stage) == 3 else plan.stage[1])
        tiles = [_ceil_div(f"G{a.dim}", a.block) for a in new.axes]
        return LaunchChange(tuple(f"{t} * {n}" for t, n in zip(tiles, items, strict=True)), items)
    if plan.group:
        for axis in new.axes:
            source = axis.dim if axis.source is None else axis.source
            count = f"G{source}" if _original(form, source).level == "item" else f"G{source} // L{source}"
            fixed = constant(axis.extent) if axis.extent is not None and plan.partials else None
            sizes[axis.dim] = count if fixed is None else str(fixed)
        sizes[0] = f"{_atom(sizes[0])} * {plan.group}"
        return LaunchChange(tuple(sizes), (plan.group,) + (1,) * (dims - 1))
    multiples = [1, 1, 1]
    for axis in new.axes:
        source = axis.dim if axis.source is None else axis.source
        old = _original(form, source)
        fixed = constant(axis.extent) if axis.extent is not None and axis.level != old.level else None
        if fixed is not None:
            count = str(fixed)
        else:
            count = f"G{source}" if old.level == "item" else f"G{source} // L{source}"
            if axis.block > 1:
                count = _ceil_div(count, axis.block)
        if axis.extent is None:
            multiples[source] = axis.block
        local = chosen.local[axis.dim] if chosen.local else 1
        if local > 1:
            if axis.extent is None:
                multiples[source] *= local
            count = f"{_ceil_div(count, local)} * {local}"
        sizes[axis.dim] = count
    if sizes == [f"G{d}" for d in range(dims)] and not chosen.local_set:
        return None
    return LaunchChange(tuple(sizes), chosen.local, (multiples[0], multiples[1], multiples[2]))


def _original(form: Form, dim: int) -> Axis:
    return next(a for a in form.axes if a.dim == dim)


def _ceil_div(count: str, by: int) -> str:
    return f"({_atom(count)} + {by - 1}) // {by}"


def _atom(count: str) -> str:
    return count if re.fullmatch(r"\w+", count) else f"({count})"


def signature(kernel: Kernel, restrict: bool) -> str:
    """Give the kernel's head as written, with ``restrict`` on its pointers where asked."""
    head = kernel.text[: kernel.text.index("{")].rstrip()
    if not restrict:
        return head
    for p in kernel.parameters:
        if p.space in {"global", "constant"} and not p.restrict:
            head = re.sub(rf"\*\s*({re.escape(p.name)})\b", r"*restrict \1", head, count=1)
    return head
