"""The form's operators and functions on numpy arrays: floating values in float64, whole ones in int64.

Whole values wrap to their dtype; ``u64`` is held as the int64 of the same bits. Floating values are not
rounded to their dtype, except literals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mb_targets.form.dtypes import common, is_integer, promote
from mb_targets.model import Dtype

Values = NDArray[Any]

FOLDS: Mapping[str, np.ufunc] = {
    "+": np.add, "*": np.multiply, "max": np.fmax, "min": np.fmin, "&": np.bitwise_and, "|": np.bitwise_or,
    "^": np.bitwise_xor,
}  # fmt: skip
_WRAPPED: Mapping[str, type[np.generic]] = {
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32,
}  # fmt: skip
STORED: Mapping[str, type[np.generic]] = {
    **_WRAPPED, "i64": np.int64, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip


def held(values: Values, dtype: Dtype) -> Values:
    """Bring a buffer's elements into the form that they are computed in."""
    if not is_integer(dtype):
        return values.astype(np.float64)
    return values.view(np.int64).copy() if values.dtype == np.uint64 else values.astype(np.int64)


def literal(value: float, dtype: Dtype) -> Values:
    """Make a literal, rounded to its dtype."""
    if is_integer(dtype):
        return wrapped(np.asarray(int(value) & 0xFFFFFFFFFFFFFFFF, np.uint64).view(np.int64), dtype)
    return np.asarray(STORED[dtype](value), np.float64)


def wrapped(values: Values, dtype: Dtype) -> Values:
    """Bring whole values into a dtype's range."""
    return values.astype(_WRAPPED[dtype]).astype(np.int64) if dtype in _WRAPPED else values


def cast(values: Values, source: Dtype, dtype: Dtype) -> Values:
    """Convert values as C does."""
    if is_integer(source):
        if is_integer(dtype):
            return wrapped(values, dtype)
        return values.view(np.uint64).astype(np.float64) if source == "u64" else values.astype(np.float64)
    if not is_integer(dtype):
        return values
    return wrapped(np.nan_to_num(np.trunc(values), posinf=0, neginf=0).astype(np.int64), dtype)


def operate(op: str, args: list[Values], dtypes: list[Dtype]) -> Values:
    """Apply an operator."""
    if len(args) == 1:
        return _unary(op, args[0], dtypes[0])
    if op in {"<<", ">>"}:
        return _shifted(op, args[0], args[1], promote(dtypes[0]))
    dtype = common(dtypes[0], dtypes[1])
    a, b = (cast(v, d, dtype) for v, d in zip(args, dtypes, strict=True))
    if op in _TESTS:
        if dtype == "u64":
            a, b = a.view(np.uint64), b.view(np.uint64)
        holds: Values = _TESTS[op](a, b).astype(np.int64)
        return holds
    if not is_integer(dtype):
        return _FLOATING[op](a, b)
    return wrapped(_divided(op, a, b, dtype) if op in {"/", "%"} else _WHOLE[op](a, b), dtype)


def _unary(op: str, a: Values, dtype: Dtype) -> Values:
    if op == "!":
        zero: Values = np.equal(a, 0).astype(np.int64)
        return zero
    if not is_integer(dtype):
        return -a
    return wrapped(-a if op == "neg" else ~a, promote(dtype))


def _shifted(op: str, a: Values, b: Values, dtype: Dtype) -> Values:
    by = b & (63 if dtype.endswith("64") else 31)
    if op == "<<":
        return wrapped(np.left_shift(a, by), dtype)
    if dtype == "u64":
        bits: Values = np.right_shift(a.view(np.uint64), by.astype(np.uint64)).view(np.int64)
        return bits
    return np.asarray(np.right_shift(a, by))


def _divided(op: str, a: Values, b: Values, dtype: Dtype) -> Values:
    """Divide towards zero; by zero, which C leaves undefined, gives 0."""
    safe = np.where(b == 0, 1, b)
    if dtype == "u64":
        quotient = (a.view(np.uint64) // safe.view(np.uint64)).view(np.int64)
    else:
        quotient = np.abs(a) // np.abs(safe) * np.where((a < 0) == (safe < 0), 1, -1)
    return np.where(b == 0, 0, quotient if op == "/" else a - quotient * safe)


_TESTS: Mapping[str, Callable[[Values, Values], Values]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal,
    "!=": np.not_equal,
    "&&": lambda a, b: (a != 0) & (b != 0), "||": lambda a, b: (a != 0) | (b != 0),
}  # fmt: skip
_FLOATING: Mapping[str, Callable[[Values, Values], Values]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.fmod,
}  # fmt: skip
_WHOLE: Mapping[str, Callable[[Values, Values], Values]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "&": np.bitwise_and, "|": np.bitwise_or,
    "^": np.bitwise_xor,
}  # fmt: skip


def call(function: str, args: list[Values], dtype: Dtype) -> Values:
    """Apply a function; the native and half ones are exact here."""
    name = function.removeprefix("native_").removeprefix("half_")
    found = _FUNCTIONS[name](*args)
    return wrapped(np.asarray(found), dtype) if is_integer(dtype) else np.asarray(found)


def _each(f: Callable[[float], float]) -> Callable[[Values], Values]:
    def guarded(x: float) -> float:
        try:
            return f(x)
        except (ValueError, OverflowError):
            return math.nan if math.isnan(x) or x < 0 else math.inf

    every = np.vectorize(guarded, otypes=[np.float64])
    return lambda x: np.asarray(every(x))


def _smoothstep(low: Values, high: Values, x: Values) -> Values:
    t = np.clip((x - low) / (high - low), 0, 1)
    return np.asarray(t * t * (3 - 2 * t))


def _whole(f: Callable[[Values], Values]) -> Callable[[Values], Values]:
    def whole(x: Values) -> Values:
        found: Values = f(x).astype(np.int64)
        return found

    return whole


def _root(x: Values, n: Values) -> Values:
    odd = (n % 2 != 0) & (x < 0)
    return np.where(odd, -1.0, 1.0) * np.power(np.where(odd, -x, x), 1.0 / n)


_FUNCTIONS: Mapping[str, Callable[..., Values]] = {
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x), "expm1": np.expm1, "log": np.log,
    "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt, "cbrt": np.cbrt, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "fabs": np.abs, "floor": np.floor, "ceil": np.ceil, "rint": np.rint, "trunc": np.trunc, "sign": np.sign,
    "degrees": np.degrees, "radians": np.radians, "pow": np.power, "powr": np.power, "fmax": np.fmax,
    "fmin": np.fmin, "fmod": np.fmod, "hypot": np.hypot, "atan2": np.arctan2, "copysign": np.copysign,
    "divide": np.divide, "min": np.minimum, "max": np.maximum, "abs": np.abs, "pown": np.power,
    "isnan": _whole(np.isnan), "isinf": _whole(np.isinf), "isfinite": _whole(np.isfinite),
    "signbit": _whole(np.signbit), "isnormal": _whole(lambda x: np.isfinite(x) & (x != 0)),
    "rsqrt": lambda x: 1.0 / np.sqrt(x), "recip": lambda x: 1.0 / x, "sinpi": lambda x: np.sin(np.pi * x),
    "cospi": lambda x: np.cos(np.pi * x), "tanpi": lambda x: np.tan(np.pi * x), "erf": _each(math.erf),
    "erfc": _each(math.erfc), "tgamma": _each(math.gamma), "lgamma": _each(math.lgamma),
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), "rootn": _root,
    "fdim": lambda a, b: np.where(a > b, a - b, np.where(a <= b, 0.0, np.nan)),
    "step": lambda edge, x: np.where(x < edge, 0.0, 1.0), "ldexp": lambda x, n: x * np.exp2(n),
    "mad": lambda a, b, c: a * b + c, "fma": lambda a, b, c: a * b + c,
    "mix": lambda a, b, t: a + (b - a) * t, "smoothstep": _smoothstep,
    "clamp": lambda x, low, high: np.minimum(np.maximum(x, low), high),
}  # fmt: skip
