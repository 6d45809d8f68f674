"""Make the inputs of a launch: named distributions, each drawn from a seed that no candidate can know.

The choice of inputs decides more than the choice of tolerance, so there are many: signs, scales, offsets,
structure, exact integers and special values. Outputs are filled with one of two poisons, so that an element
which was never written, or which depends on what was there before, shows.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mb_targets.model import ITEM_BYTES, LaunchSpec
from mb_targets.protocol import Launch

Values: TypeAlias = NDArray[np.generic]
Floats: TypeAlias = NDArray[np.float64]

DTYPES: Mapping[str, np.dtype[np.generic]] = {
    name: np.dtype(f"{name[0]}{size}") for name, size in ITEM_BYTES.items()
}

# A quiet NaN with a payload that arithmetic does not make, and a finite number: ``fmax`` would drop a NaN.
_FLOAT_POISON = {
    "f16": (0x7EA5, 0x70A5),
    "f32": (0x7FE5A5A5, 0x4B3C614E),
    "f64": (0x7FF5A5A5A5A5A5A5, 0x41678C29DCCCCCCD),
}
POISONS = 2


@dataclass(frozen=True, slots=True)
class Fill:
    """How inputs are made: a distribution's name, a seed, and a factor for floating-point scalars."""

    distribution: str
    seed: int
    scalars: float = 1.0

    def __str__(self) -> str:
        """Write it as evidence shows it."""
        scaled = "" if self.scalars == 1.0 else f", scalars x {self.scalars:g}"
        return f"{self.distribution}, seed {self.seed}{scaled}"


def _spiked(rng: np.random.Generator, n: int) -> Floats:
    values = rng.standard_normal(n)
    values[rng.random(n) < 0.02] *= 1e4
    return values


def _striped(rng: np.random.Generator, n: int) -> Floats:
    return rng.standard_normal(n) * np.where(np.arange(n) // 3 % 2 == 0, 1.0, 1e-2)


def _sprinkled(*special: float) -> Callable[[np.random.Generator, int], Floats]:
    def make(rng: np.random.Generator, n: int) -> Floats:
        values = rng.standard_normal(n)
        hit = rng.random(n) < min(0.05, 4.0 / max(n, 1) ** 0.5)
        values[hit] = rng.choice(special, int(hit.sum()))
        return values

    return make


FLOATS: Mapping[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.uniform(-1, 1, n),
    "positive": lambda rng, n: rng.uniform(0.05, 1, n),
    "negative": lambda rng, n: -np.abs(rng.standard_normal(n)) - 0.01,
    "large": lambda rng, n: 200 * rng.standard_normal(n),
    "tiny": lambda rng, n: 1e-3 * rng.standard_normal(n),
    "offset": lambda rng, n: 1000 + rng.standard_normal(n),
    "zeros": lambda _, n: np.zeros(n),
    "ones": lambda _, n: np.ones(n),
    # A few bits only: rounding the same value again and again would be biased, in the original too.
    "equal": lambda rng, n: np.full(n, rng.integers(1, 13) / 4),
    "spiked": _spiked,
    "striped": _striped,
    "integers": lambda rng, n: rng.integers(-4, 5, n).astype(np.float64),
    "signed zeros": _sprinkled(0.0, -0.0),
    "infinities": _sprinkled(np.inf, -np.inf),
    "minus infinity": _sprinkled(-np.inf),
    "not a number": _sprinkled(np.nan),
    "subnormals": _sprinkled(1e-39, -3e-40),
}

# What integers become under a distribution, where the launch gives no range for them.
_INTEGERS = {
    "negative": (-100, -1),
    "uniform": (-100, 100),
    "large": (-30000, 30000),
    "zeros": (0, 0),
    "ones": (1, 1),
}


def dtype_of(launch: Launch, name: str) -> np.dtype[np.generic]:
    """Give the numpy dtype of a buffer's elements."""
    return DTYPES[launch.dtypes[name]]


def make(spec: LaunchSpec, launch: Launch, fill: Fill, poison: int = 0) -> dict[str, Values]:
    """Make every buffer of a launch: inputs drawn, outputs poisoned.

    Args:
        spec: Gives the roles.
        launch: Gives the sizes and the ranges.
        fill: What to draw. The same fill always gives the same bytes.
        poison: Which of the ``POISONS`` patterns outputs hold.
    """
    buffers: dict[str, Values] = {}
    for argument in spec.arguments:
        if argument.name not in launch.buffers:
            continue
        dtype = dtype_of(launch, argument.name)
        count = launch.buffers[argument.name] // dtype.itemsize
        if argument.role == "out":
            buffers[argument.name] = poisoned(argument.dtype, count, poison)
            continue
        span = launch.ranges.get(argument.name)
        name = zlib.crc32(argument.name.encode())
        rng = np.random.default_rng([fill.seed, zlib.crc32(fill.distribution.encode()), name])
        if dtype.kind == "f":
            with np.errstate(over="ignore"):
                buffers[argument.name] = _floats(span, fill.distribution, rng, count).astype(dtype)
        else:
            buffers[argument.name] = _integers(span, fill.distribution, rng, count, dtype)
    return buffers


def poisoned(dtype: str, count: int, pattern: int) -> Values:
    """Make an output buffer that holds nothing but poison."""
    size = DTYPES[dtype].itemsize
    if dtype in _FLOAT_POISON:
        word = _FLOAT_POISON[dtype][pattern].to_bytes(size, "little")
    else:
        word = (b"\xa5", b"\x5a")[pattern] * size
    return np.frombuffer(word * count, DTYPES[dtype]).copy()


def perturbed(spec: LaunchSpec, buffers: Mapping[str, Values], seed: int) -> dict[str, Values]:
    """Move every floating-point input by one unit in the last place, up or down at random; zeros stay."""
    result = dict(buffers)
    for argument in spec.arguments:
        values = buffers.get(argument.name)
        if values is None or argument.role == "out" or values.dtype.kind != "f":
            continue
        rng = np.random.default_rng([seed, zlib.crc32(argument.name.encode())])
        up = rng.random(values.size) < 0.5
        target = np.where(up, np.inf, -np.inf).astype(values.dtype)
        moved = np.nextafter(values, target)
        result[argument.name] = np.where((values == 0) | ~np.isfinite(values), values, moved)
    return result


def changed(spec: LaunchSpec, buffers: Mapping[str, Values], share: float) -> dict[str, Values]:
    """Change a share of the floating-point inputs, chosen at random, by much more than rounding."""
    result = dict(buffers)
    for argument in spec.arguments:
        values = buffers.get(argument.name)
        if values is None or argument.role == "out" or values.dtype.kind != "f":
            continue
        rng = np.random.default_rng([int(1 / share), zlib.crc32(argument.name.encode())])
        chosen = rng.random(values.size) < share
        result[argument.name] = np.where(chosen, values.astype(np.float64) * 1.5, values).astype(values.dtype)
    return result


def as_bytes(buffers: Mapping[str, Values]) -> dict[str, memoryview]:
    """Give the buffers' own memory."""
    return {name: values.data for name, values in buffers.items()}


def has_floats(spec: LaunchSpec) -> bool:
    """Tell whether any input is floating-point: else the distributions of special values say nothing."""
    return any(a.dtype[0] == "f" and a.role in ("in", "inout") for a in spec.arguments)


def _floats(
    span: tuple[float, float] | None, distribution: str, rng: np.random.Generator, count: int
) -> Floats:
    if span is None:
        return FLOATS[distribution](rng, count)
    if distribution in ("zeros", "ones", "equal", "integers", "signed zeros"):
        return np.clip(FLOATS[distribution](rng, count), *span)
    return rng.uniform(*span, count)


def _integers(
    span: tuple[float, float] | None,
    distribution: str,
    rng: np.random.Generator,
    count: int,
    dtype: np.dtype[np.generic],
) -> Values:
    limits = np.iinfo(dtype.name)
    low, high = _INTEGERS.get(distribution, (0, 99))
    constant = distribution in ("zeros", "ones")
    if span is not None:
        least, most = int(span[0]), max(int(span[0]), int(span[1]))
        low, high = (min(max(low, least), most),) * 2 if constant else (least, most)
    elif limits.bits == 8 and not constant:
        low, high = limits.min, limits.max
    elif limits.min == 0:
        low, high = sorted((abs(low), abs(high)))
    low, high = max(low, limits.min), min(high, limits.max)
    return rng.integers(low, high, count, dtype=dtype.name, endpoint=True)
