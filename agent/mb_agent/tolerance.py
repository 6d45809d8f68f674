"""Say how far an output may be from the original's, and find where a candidate is further off.

No constant decides. The bound of an element has three parts: a multiple of the ORIGINAL's own error against
the float64 evaluation on the same input; a multiple of how much the original's output moves when its inputs
move by one unit in the last place, which is the rounding that any order of evaluation has; and a few units in
the last place of the result. Errors are taken over an element's neighbours and over blocks of elements of
like magnitude, so that one lucky element does not refuse a good candidate; an element that the original
resolves may still not be lost.
``docs/decisions/0004-verification.md`` gives the figures behind the multiples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mb_agent.inputs import Floats, Values
from mb_targets.model import Argument, Precision

Mask = NDArray[np.bool_]

OWN = 4.0
SHAKEN = 4.0
ULPS = 4.0
BLOCK = 64
SAMPLE = 1 << 16
# Neighbours on each side whose errors count as one's own: where terms cancel, an element's own error is luck.
NEIGHBOURS = 8
# An element that the original resolves may not be lost altogether, whatever its neighbours' errors are.
KEPT = 0.25
# A reference this many times further off than rounding explains is no reference: the lifting is at fault.
ABSURD = 256.0

# By precision: the multiple of the own error, and how many units in the last place an input may lose.
_ALLOWED: dict[Precision, tuple[float, float]] = {
    "bitwise": (0.0, 0.0),
    "same": (OWN, 1.0),
    "fp32-emulated": (16.0, 4.0),
    "tf32": (16.0, 2.0**13),
    "half": (16.0, 2.0**14),
}


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The worst element of an output: flat index (-1 for a fold), and both values as text."""

    index: int
    got: str
    expected: str


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """What one output must hold.

    Attributes:
        argument: The output.
        original: What the original gave.
        written: Elements that the original writes.
        truth: The float64 reference where there is one, else the original's values; folded where a fold
            matters. None where equality is asked for.
        bound: Largest allowed difference, an element each.
        norm: Largest allowed root mean square of the differences.
        basis: What the bound was derived from.
        share: The original's own error in units of the bound.
    """

    argument: Argument
    original: Values
    written: Mask
    truth: Floats | None
    bound: Floats | None
    norm: float
    basis: str
    share: float = 0.0


def expect(
    argument: Argument,
    original: Values,
    written: Mask,
    reference: Values | None,
    shaken: Sequence[Values],
    precision: Precision,
    reduced: float,
    tolerance: float | None = None,
) -> Expected:
    """Derive the bound of one output.

    Args:
        argument: The output.
        original: The original's values.
        written: Elements that the original writes.
        reference: The float64 evaluation, None where the kernel does not lift.
        shaken: The original's values on inputs moved by one unit in the last place, a few draws.
        precision: What error is allowed.
        reduced: About how many inputs meet in one output, at least 1.
        tolerance: Relative error that the user allows on top.
    """
    if original.dtype.kind != "f" or precision == "bitwise":
        return Expected(argument, original, written, None, None, 0.0, "equality")
    kind = np.finfo(original.dtype.name)
    eps = float(kind.eps)
    own_times, ulps = _ALLOWED[precision]
    plain = _view(argument, original, written)
    # A candidate may be as inexact as plain sequential accumulation in the same type, whose rounding errors
    # grow with the square root of the terms.
    times = SHAKEN * ulps * max(1.0, reduced**0.5 / 4)
    with np.errstate(invalid="ignore", over="ignore"):
        noise, typical = _noise([_distance(_view(argument, s, written), plain) for s in shaken], plain)
        floor = times * (noise + eps * np.abs(plain))
        if argument.fold:
            # Each partial result is itself rounded once.
            floor = floor + SHAKEN * ulps * eps * float(np.linalg.norm(_finite(original[written])))
        truth, own = _trusted(argument, plain, written, reference, ABSURD * floor + eps)
        basis = "its rounding noise"
        if truth is not plain:
            basis = f"the original's own error against a float64 evaluation, and {basis}"
            if not own.any() and _whole(plain):
                floor = ULPS * eps * np.abs(plain)  # exact arithmetic is exact in any order
        bound = own_times * np.maximum(_around(own), _by_magnitude(own, truth, 1.0)) + floor
        size = np.abs(truth)
        bound = np.minimum(bound, np.maximum(KEPT * size, 16 * times * np.maximum(own, typical)))
        if tolerance:
            bound = np.maximum(bound, tolerance * size)
            basis += f", and the {tolerance:g} that the launch allows"
        # Results below the smallest normal number may be flushed to zero.
        bound = np.maximum(bound, float(kind.tiny))
        norm = max(_rms(own) * own_times + _rms(floor), _rms(bound) if tolerance else 0.0)
    share = float(np.max(own / bound)) if own.size else 0.0
    return Expected(argument, original, written, truth, bound, norm, basis, share)


def _noise(moved: Sequence[Floats], plain: Floats) -> tuple[Floats, Floats]:
    """Give the rounding noise about each element, by neighbours and by like magnitude, and its own."""
    if not moved:
        return np.zeros_like(plain), np.zeros_like(plain)
    typical: Floats = np.median(moved, axis=0) if len(moved) > 1 else moved[0]
    most: Floats = np.max(moved, axis=0) if len(moved) > 1 else moved[0]
    return np.maximum(_around(most), _by_magnitude(typical, plain, 0.98)), typical


def _trusted(
    argument: Argument, plain: Floats, written: Mask, reference: Values | None, absurd: Floats
) -> tuple[Floats, Floats]:
    """Give what is true and the original's own error; without a good reference, itself and 0."""
    if reference is not None:
        exact = _view(argument, reference.astype(np.float64).reshape(-1), written)
        error = _distance(exact, plain)
        if np.array_equal(np.isfinite(exact), np.isfinite(plain)) and np.all(error <= absurd):
            return exact, error
    return plain, np.zeros_like(plain)


def compare(
    expected: Expected, got: Values, before: Values, *, finite_only: bool = False
) -> tuple[float, Mismatch | None]:
    """Compare one output: the largest error in units of the bound, and where it is beyond it.

    Args:
        expected: What the original gave and how far off one may be.
        got: The candidate's values.
        before: What the buffer held before the candidate ran.
        finite_only: Look only where the original's result is a finite number.
    """
    if got.dtype != expected.original.dtype or got.size != expected.original.size:
        return float("inf"), Mismatch(-1, f"{got.dtype} x {got.size}", f"{expected.original.size}")
    if expected.written.all() and np.array_equal(_bits(got), _bits(expected.original)):
        return expected.share, None
    untouched = _first(~expected.written & (_bits(got) != _bits(before)))
    if untouched is not None:
        return float("inf"), Mismatch(untouched, str(got[untouched]), "not written")
    if expected.truth is None or expected.bound is None:
        wrong = _first(expected.written & ~_same(got, expected.original))
        return (0.0, None) if wrong is None else (float("inf"), _at(expected, got, wrong))
    plain, truth = _view(expected.argument, got, expected.written), expected.truth
    if not (np.isfinite(plain).all() and np.isfinite(truth).all()):
        unlike = _pattern(plain) != _pattern(truth)
        where = _first(unlike & np.isfinite(truth) if finite_only else unlike)
        if where is not None:
            return float("inf"), _at(expected, got, where)
    error = _distance(plain, truth)
    if not error.size:
        return 0.0, None
    share = error / expected.bound
    worst = int(np.argmax(share))
    largest = float(share[worst])
    if largest > 1.0:
        return largest, _at(expected, got, worst)
    spread = _rms(error) / expected.norm if expected.norm else 0.0
    return (spread, _at(expected, got, worst)) if spread > 1.0 and error.size >= BLOCK else (largest, None)


def unwritten(poison: Values, result: Values) -> Mask:
    """Find the elements that still hold their poison."""
    same: Mask = _bits(poison) == _bits(result)
    return same


def written_by(first: tuple[Values, Values], second: tuple[Values, Values]) -> tuple[Mask, Mask]:
    """Find what a kernel wrote from two runs over different poisons, each given as (poison, result).

    Returns:
        The elements written, and those whose result depends on what the buffer held before.
    """
    kept = unwritten(*first) & unwritten(*second)
    depends = ~kept & (_bits(first[1]) != _bits(second[1]))
    return ~kept, depends


def _view(argument: Argument, values: Values, written: Mask) -> Floats:
    """Give the values as compared: all written ones in float64, or their fold."""
    if not argument.fold:
        plain = values.astype(np.float64)
        plain[~written] = 0.0
        return plain
    chosen = values[written].astype(np.float64)
    if not chosen.size:
        return np.zeros(1)
    match argument.fold:
        case "sum":
            folded = chosen.sum()
        case "max":
            folded = chosen.max()
        case "min":
            folded = chosen.min()
    return np.array([folded], dtype=np.float64)


def _by_magnitude(error: Floats, values: Floats, quantile: float) -> Floats:
    """Spread errors over blocks of elements of like magnitude; larger elements inherit from smaller ones."""
    if not error.any():
        return error
    stride = -(-error.size // SAMPLE)
    size = np.abs(values)
    sample, seen = size[::stride], error[::stride]
    order = np.argsort(sample, kind="stable")
    blocks = max(1, min(BLOCK, sample.size // BLOCK))
    parts = np.array_split(order, blocks)
    tops = [float(np.quantile(seen[part], quantile, method="higher")) for part in parts]
    edges = [float(sample[part[0]]) for part in parts[1:]]
    return np.maximum.accumulate(tops)[np.searchsorted(edges, size, side="right")]


def _around(error: Floats) -> Floats:
    """Give each element the largest error among its neighbours."""
    result = error
    reach = 1
    while reach <= NEIGHBOURS:
        wider = result.copy()
        np.maximum(wider[reach:], result[:-reach], out=wider[reach:])
        np.maximum(wider[:-reach], result[reach:], out=wider[:-reach])
        result = wider
        reach *= 2
    return result


def _distance(a: Floats, b: Floats) -> Floats:
    """Give absolute differences, 0 where either is not finite: patterns are compared apart."""
    with np.errstate(invalid="ignore"):
        difference = np.abs(a - b)
    return np.where(np.isfinite(difference), difference, 0.0)


def _pattern(values: Floats) -> NDArray[np.int8]:
    """Give 0 for a finite value, 1 and -1 for the infinities, 2 for NaN."""
    infinite = np.where(np.isinf(values), np.sign(values), 0.0)
    return np.where(np.isnan(values), 2.0, infinite).astype(np.int8)


def _bits(values: Values) -> NDArray[np.generic]:
    return values.view(np.dtype(f"u{values.dtype.itemsize}"))


def _same(a: Values, b: Values) -> Mask:
    same: Mask = _bits(a) == _bits(b)
    return same | (np.isnan(a) & np.isnan(b)) if a.dtype.kind == "f" else same


def _first(mask: Mask) -> int | None:
    return int(np.argmax(mask)) if mask.any() else None


def _finite(values: Values) -> Floats:
    return np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)


def _rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0


def _whole(values: Floats) -> bool:
    return bool(np.all(np.isfinite(values)) and np.all(values == np.rint(values)))


def _at(expected: Expected, got: Values, index: int) -> Mismatch:
    if expected.argument.fold and expected.truth is not None:
        view = _view(expected.argument, got, expected.written)
        return Mismatch(-1, f"{view[0]:.9g}", f"{expected.truth[0]:.9g}")
    want = expected.original[index] if expected.truth is None else expected.truth[index]
    return Mismatch(index, _text(got[index]), _text(want))


def _text(value: np.generic) -> str:
    return f"{float(value):.9g}" if value.dtype.kind == "f" else str(value)
