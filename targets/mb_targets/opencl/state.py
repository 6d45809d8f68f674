"""The performance state of an OpenCL kernel, from its form, or from its tokens where it does not lift."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from mb_targets.expression import ExpressionError, evaluate
from mb_targets.form import traits
from mb_targets.form.nest import DoesNotLift, Form
from mb_targets.model import ITEM_BYTES, Device, Kernel, LaunchSpec, State
from mb_targets.opencl.lift import lift
from mb_targets.opencl.tokens import tokens

_LATENCY_BYTES = 1 << 16  # below this a launch costs more than its work
_COMPUTE_INTENSITY = 3  # a power of 2: 8 operations a byte
_MATH_SHARE = 0.5
_LOWEST, _HIGHEST = -4, 10
_MATH_TOKEN = re.compile(r"(?:native_|half_)?(?:exp|log|pow|sin|cos|tan|tanh|sqrt|rsqrt|erf)\w*")


def state(kernel: Kernel, launch: LaunchSpec, device: Device) -> State:
    """Say what limits a kernel, without naming it; modelled at the sizes that the launch measures with."""
    form = lift(kernel, launch)
    values = {s.name: s.value for s in launch.symbols}
    sizes = _bytes(launch, values)
    touched = sum(sizes.values())
    values |= {a.name: _value(a.extent, values) for a in launch.arguments if a.role == "scalar"}
    if isinstance(form, Form):
        access = tuple(sorted({traits.walks(a, form.axes) for a in traits.accesses(form)}))
        family, work = traits.family(form), traits.work(form, _items(form, launch, values), values)
    else:
        access, family, work = (), "unknown", _guess(kernel, launch, values)
    intensity = _power(work.operations / touched if touched else 1.0)
    return State(
        family=family,
        access=access,
        dtype=_dtype(launch, sizes),
        size_class=round(math.log(max(touched, 1), 4)),
        intensity=intensity,
        bottleneck=_bottleneck(form, work, touched, intensity),
        target="opencl",
        device=device.key,
    )


def _bottleneck(form: Form | DoesNotLift, work: traits.Work, touched: float, intensity: int) -> str:
    if work.math > _MATH_SHARE:
        return "math"
    if isinstance(form, DoesNotLift):
        return "unknown"
    if intensity >= _COMPUTE_INTENSITY:
        return "compute"
    return "latency" if touched < _LATENCY_BYTES else "memory"


def _value(text: str, values: Mapping[str, float]) -> float:
    try:
        return float(evaluate(text, values))
    except ExpressionError:
        return 0.0


def _bytes(launch: LaunchSpec, values: Mapping[str, float]) -> dict[str, float]:
    """Give the size of each buffer at these sizes."""
    return {
        a.name: max(_value(a.extent, values), 0.0) * ITEM_BYTES[a.dtype]
        for a in launch.arguments
        if a.role in {"in", "out", "inout"}
    }


def _items(form: Form, launch: LaunchSpec, values: Mapping[str, float]) -> float:
    total = 1.0
    for axis in form.axes:
        known = None if axis.extent is None else traits.number(axis.extent, values)
        if known is None and axis.dim < len(launch.global_size):
            known = _value(launch.global_size[axis.dim], values)
        total *= max(known or 1.0, 1.0)
    return total


def _dtype(launch: LaunchSpec, sizes: Mapping[str, float]) -> str:
    """Name the dtype that most bytes are in."""
    by_dtype: dict[str, float] = {}
    for a in launch.arguments:
        if a.name in sizes:
            by_dtype[a.dtype] = by_dtype.get(a.dtype, 0.0) + sizes[a.name]
    return max(by_dtype, key=lambda d: (by_dtype[d], d), default="f32")


def _power(ratio: float) -> int:
    return min(max(round(math.log2(ratio)), _LOWEST), _HIGHEST) if ratio > 0 else _LOWEST


def _guess(kernel: Kernel, launch: LaunchSpec, values: Mapping[str, float]) -> traits.Work:
    """Count operators and functions in the text, once for each item."""
    words = tokens(kernel.text)
    functions = 16 * sum(bool(_MATH_TOKEN.fullmatch(w)) for w in words)
    total = functions + sum(w in {"+", "-", "*", "/", "+=", "-=", "*="} for w in words)
    items = 1.0
    for text in launch.global_size:
        items *= max(_value(text, values), 1.0)
    return traits.Work(total * items, functions / total if total else 0.0)
