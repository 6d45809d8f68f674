"""Kernels of the test data with their launches, and small inputs for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mb_targets.form.nest import DoesNotLift, Form
from mb_targets.model import Kernel, LaunchSpec
from mb_targets.opencl.detect import find_kernels
from mb_targets.opencl.launch import infer_launch
from mb_targets.opencl.lift import lift
from mb_targets.protocol import Launch

ROOT = Path(__file__).parent.parent
NUMPY = {
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32,
    "i64": np.int64, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip

Arrays = dict[str, NDArray[np.generic]]


def kernels(path: Path) -> Iterator[tuple[Kernel, LaunchSpec]]:
    """Read a file's kernels; each must have a whole launch."""
    for kernel in find_kernels(path.read_text(), "opencl"):
        launch = infer_launch(kernel, path)
        assert isinstance(launch, LaunchSpec), launch
        yield kernel, launch


def from_text(source: str, name: str = "") -> tuple[Kernel, LaunchSpec]:
    """Read a source's only kernel, or the one of a name."""
    kernel = next(k for k in find_kernels(source, "opencl") if not name or k.name == name)
    launch = infer_launch(kernel, None)
    assert isinstance(launch, LaunchSpec), launch
    return kernel, launch


def form_of(source: str) -> Form:
    """Lift a source's only kernel."""
    found = lift(*from_text(source))
    assert isinstance(found, Form), found
    return found


def refusal(source: str) -> str:
    """Give the reason why a source's only kernel does not lift."""
    found = lift(*from_text(source))
    assert isinstance(found, DoesNotLift), found
    return found.reason


def make_inputs(launch: LaunchSpec, concrete: Launch, seed: int = 3) -> Arrays:
    """Fill every buffer of a launch: small random values, within the range that the launch gives."""
    random = np.random.default_rng(seed)
    made: Arrays = {}
    for a in launch.arguments:
        if a.name not in concrete.buffers:
            continue
        dtype = np.dtype(NUMPY[a.dtype])
        count = concrete.buffers[a.name] // dtype.itemsize
        if dtype.kind == "f":
            made[a.name] = random.standard_normal(count).astype(dtype)
        else:
            low, high = concrete.ranges.get(a.name, (0, 100))
            made[a.name] = random.integers(int(low), int(high), count, endpoint=True).astype(dtype)
    return made
