"""The action catalogue of OpenCL: what may be done to a kernel here, and what it makes of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from mb_targets.form.dependence import Declined
from mb_targets.form.nest import Call, DoesNotLift, Form, Pack
from mb_targets.form.schedule import STEPS, schedule
from mb_targets.form.schedule import apply as carry_out
from mb_targets.form.traverse import expressions, statements, walk
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
from mb_targets.opencl.ndrange import launch_change, rounded

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
    chosen = Choices()
    for a in chain:
        match a.id:
            case "local":
                local = None if a.parameters == ("none",) else tuple(map(int, a.parameters))
                chosen = replace(chosen, local=local, local_set=True)
            case "keep_launch":
                chosen = replace(chosen, keep_launch=True)
            case "restrict":
                chosen = replace(chosen, restrict=True)
            case "flags":
                chosen = replace(chosen, flags=a.parameters)
            case _:
                pass
    return chosen


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
    chain = (*(a for a in variant.chain if not _overrides(action, a)), action)
    form = lifted(kernel, launch)
    structural = any(a.id in STEPS or a.id == "keep_launch" for a in chain)
    try:
        if not structural:
            return _textual(kernel, launch, form, chain)
        if isinstance(form, DoesNotLift):
            return NotApplicable(f"the kernel does not lift: {form.reason}")
        return _structural(kernel, launch, form, chain)
    except Declined as e:
        return NotApplicable(str(e))


def _overrides(action: Action, earlier: Action) -> bool:
    """Tell whether an action sets again what an earlier one set, so that the earlier one says nothing."""
    if action.id != earlier.id or action.id == "rewrite":
        return False
    return action.id not in {"jam", "lanes", "chunk"} or action.parameters[0] == earlier.parameters[0]


def _structural(kernel: Kernel, launch: LaunchSpec, form: Form, chain: tuple[Action, ...]) -> Variant:
    chosen = choices(chain)
    folded = frozenset(a.name for a in launch.arguments if a.fold == "sum")
    plan = schedule(chain, folded)
    if chosen.keep_launch and plan.swap:
        raise Declined("swapped axes need a swapped NDRange")
    if chosen.keep_launch and (plan.stage or plan.halo or plan.group):
        raise Declined("local tiles need their own work-group size")
    whole = frozenset() if chosen.keep_launch else frozenset(a.name for a in form.axes if a.extent is None)
    new = carry_out(form, plan, whole)
    change = (
        None
        if chosen.keep_launch
        else launch_change(form, new, len(launch.global_size), plan, chosen.local, chosen.local_set)
    )
    if change is not None and change.global_size != tuple(f"G{d}" for d in range(len(launch.global_size))):
        _refuse_launch_queries(form)
    surplus = change is not None and change.local_size is not None and any(n > 1 for n in change.local_size)
    style = printer.Style(chosen.keep_launch, surplus)
    text = f"{signature(kernel, chosen.restrict, change, _widest(new))}\n{printer.body(new, style)}"
    source = kernel.source[: kernel.start] + text + kernel.source[kernel.end :]
    if text == kernel.text and change is None:
        raise Declined("it changes nothing")
    return Variant(source, kernel.name, chain, change, chosen.flags)


def _widest(form: Form) -> str:
    """Name the widest vector type that a body computes with; empty for scalars only."""
    found = [
        e
        for s in statements(form.body)
        for top in expressions(s)
        for e in walk(top)
        if e.lanes > 1 and not isinstance(e, Pack)
    ]
    widest = max(found, key=lambda e: (e.lanes, e.dtype[0] == "f"), default=None)
    return "" if widest is None else printer.type_name(widest.dtype, widest.lanes)


def _refuse_launch_queries(form: Form) -> None:
    """A kernel that asks how large its launch is means something else under another one."""
    for s in statements(form.body):
        for top in expressions(s):
            for e in walk(top):
                if isinstance(e, Call) and e.function.startswith("get_"):
                    raise Declined(f"the kernel asks for {e.function}, which another NDRange changes")


def _textual(
    kernel: Kernel, launch: LaunchSpec, form: Form | DoesNotLift, chain: tuple[Action, ...]
) -> Variant:
    """Variants that keep the body as it stands: work-group size, qualifiers, compiler flags."""
    chosen = choices(chain)
    text = kernel.text
    if chosen.restrict:
        head = signature(kernel, restrict=True, change=None, vector="")
        text = head + "\n" + text[text.index("{") :]
    change = None
    if chosen.local_set:
        guarded = isinstance(form, Form) and all(a.guarded for a in form.axes)
        change = rounded(len(launch.global_size), chosen.local, guarded)
    source = kernel.source[: kernel.start] + text + kernel.source[kernel.end :]
    if source == kernel.source and change is None and not chosen.flags:
        raise Declined("it changes nothing")
    return Variant(source, kernel.name, chain, change, chosen.flags)


REQUIRED_SIZE = re.compile(r"\s*__attribute__\s*\(\(\s*reqd_work_group_size\s*\([^()]*\)\s*\)\)")


def signature(kernel: Kernel, restrict: bool, change: LaunchChange | None, vector: str) -> str:
    """Give the kernel's head as written.

    Args:
        kernel: The kernel.
        restrict: Whether its pointers become ``restrict``.
        change: The new NDRange, which overrides a work-group size required by attribute.
        vector: The widest vector type of the new body, for a compiler that would else vectorize across
            items as well (Intel's: 3x slower on a register-blocked matmul); empty for none.
    """
    head = kernel.text[: kernel.text.index("{")].rstrip()
    if change is not None:
        head = REQUIRED_SIZE.sub("", head)
    if vector and "vec_type_hint" not in head:
        hint = rf"\1 __attribute__((vec_type_hint({vector})))\n"
        head = re.sub(r"\b((?:__)?kernel)\s+", hint, head, count=1)
    if not restrict:
        return head
    for p in kernel.parameters:
        if p.space in {"global", "constant"} and not p.restrict:
            head = re.sub(rf"\*\s*({re.escape(p.name)})\b", r"*restrict \1", head, count=1)
    return head
