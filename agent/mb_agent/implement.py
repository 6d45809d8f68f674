"""Carry out a choice: apply its actions, one after the other, with the target's own transformations."""

from __future__ import annotations

from mb_agent.choose import Choice
from mb_targets.model import Device, Kernel, LaunchSpec, NotApplicable, Variant
from mb_targets.protocol import Target


def implement(
    target: Target, kernel: Kernel, launch: LaunchSpec, device: Device, choice: Choice
) -> Variant | NotApplicable:
    """Make the variant that a choice asks for."""
    if choice.planted is not None:
        return choice.planted
    variant = choice.parent.variant
    for action in choice.actions:
        made = target.apply(kernel, launch, device, variant, action)
        if isinstance(made, NotApplicable):
            return made
        variant = made
    return variant
