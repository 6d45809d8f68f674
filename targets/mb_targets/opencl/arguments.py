"""A launch's values as a kernel's arguments, each with the parameter's own type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyopencl as cl

from mb_targets.errors import RunError
from mb_targets.protocol import Launch

if TYPE_CHECKING:
    from mb_targets.protocol import Array

TYPES = {
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32,
    "i64": np.int64, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip


def bind(kernel: cl.Kernel, launch: Launch, buffers: Mapping[str, cl.Buffer]) -> None:
    """Set a kernel's arguments.

    Raises:
        RunError: The launch names fewer or other parameters than the kernel has.
    """
    if kernel.num_args != len(launch.order):
        raise RunError(f"the kernel has {kernel.num_args} parameters and the launch {len(launch.order)}")
    for index, name in enumerate(launch.order):
        if name in buffers:
            kernel.set_arg(index, buffers[name])
        elif name in launch.local_bytes:
            reserved = cl.LocalMemory(max(1, launch.local_bytes[name]))
            kernel.set_arg(index, reserved)  # type: ignore[arg-type]  # pyopencl's stubs leave it out
        elif name in launch.scalars:
            value = scalar(launch.scalars[name], launch.dtypes[name], launch.lanes.get(name, 1))
            kernel.set_arg(index, value)
        else:
            raise RunError(f"the launch gives no value for parameter {name}")


def scalar(value: float, dtype: str, lanes: int) -> Array:
    """Type a value; a vector parameter gets it in every lane."""
    kind = np.dtype(TYPES[dtype])
    try:
        return np.full(4 if lanes == 3 else lanes, value if kind.kind == "f" else int(value), kind)
    except (OverflowError, ValueError):
        raise RunError(f"{value:g} does not fit into a parameter of type {dtype}") from None
