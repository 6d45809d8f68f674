"""Evaluate a kernel in float64 without a device; for the job process, which has numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mb_targets.form.evaluate import evaluate
from mb_targets.form.nest import DoesNotLift
from mb_targets.model import Kernel, LaunchSpec
from mb_targets.opencl.lift import lift

if TYPE_CHECKING:
    from mb_targets.protocol import Array, Launch


def reference(
    kernel: Kernel, launch: LaunchSpec, concrete: Launch, inputs: Mapping[str, Array]
) -> Mapping[str, Array] | None:
    """Evaluate the lifted form; None where the kernel does not lift.

    Raises:
        RunError: It reads or writes outside a buffer.
    """
    form = lift(kernel, launch)
    if isinstance(form, DoesNotLift):
        return None
    return evaluate(form, concrete.scalars, inputs, concrete.global_size, concrete.local_size)
