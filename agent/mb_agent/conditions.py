"""What must hold for a variant to be right that no run has shown, in words for its user."""

from __future__ import annotations

import re

from mb_targets.model import Kernel, Variant
from mb_targets.outcome import Verdict

APART = "buffers of different parameters do not overlap"
WHOLE = (
    "the kernel is launched over its whole range at once and without a global offset: a host that launches "
    "part of the range, or splits it by offsets, gets other results"
)
# Actions that leave each load and store where the original has it.
IN_PLACE = frozenset({"local", "keep_launch", "flags"})
# Actions that leave to each work item the results that the original gives it.
SAME_ITEMS = frozenset({"local", "restrict", "flags"})
_RESTRICT = re.compile(r"\b(?:__)?restrict\b")


def conditions(kernel: Kernel, variant: Variant, verdict: Verdict) -> tuple[str, ...]:
    """List them: what the launch must be, that buffers lie apart, and what was not checked."""
    must_hold = []
    if variant.launch is not None and any(m > 1 for m in variant.launch.multiples):
        multiples = " x ".join(str(m) for m in variant.launch.multiples if m > 1)
        must_hold.append(f"the original's global size must be a multiple of {multiples}")
    if _maps_anew(kernel, variant):
        must_hold.append(WHOLE)
    if _relies_on_apart(kernel, variant):
        must_hold.append(APART)
    return (*must_hold, *(f"not checked: {u}" for u in verdict.unchecked))


def _maps_anew(kernel: Kernel, variant: Variant) -> bool:
    """Tell whether work items may compute other results than the original's, as many as there may be."""
    if not variant.chain:
        return variant.source != kernel.source
    return any(action.id not in SAME_ITEMS for action in variant.chain)


def _relies_on_apart(kernel: Kernel, variant: Variant) -> bool:
    """Tell whether a variant may be wrong in place where the original is right; no run has shown that."""
    buffers = sum(p.space in ("global", "constant") for p in kernel.parameters)
    if buffers < 2:
        return False
    promised = len(_RESTRICT.findall(variant.source)) > len(_RESTRICT.findall(kernel.source))
    return promised or any(action.id not in IN_PLACE for action in variant.chain) or not variant.chain
