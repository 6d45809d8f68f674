"""The functions without side effects that a form may call, by their OpenCL names, and what they return."""

from __future__ import annotations

from collections.abc import Sequence

from mb_targets.form.dtypes import common, is_integer, promote
from mb_targets.model import Dtype

_ONE = frozenset(
    [
        "exp",
        "exp2",
        "exp10",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sqrt",
        "rsqrt",
        "cbrt",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "sinpi",
        "cospi",
        "tanpi",
        "erf",
        "erfc",
        "tgamma",
        "lgamma",
        "fabs",
        "floor",
        "ceil",
        "round",
        "rint",
        "trunc",
        "sign",
        "degrees",
        "radians",
        "native_exp",
        "native_exp2",
        "native_exp10",
        "native_log",
        "native_log2",
        "native_log10",
        "native_sqrt",
        "native_rsqrt",
        "native_sin",
        "native_cos",
        "native_tan",
        "native_recip",
        "half_exp",
        "half_log",
        "half_sqrt",
        "half_rsqrt",
        "half_sin",
        "half_cos",
        "half_recip",
    ]
)
_TWO = frozenset(
    [
        "pow",
        "powr",
        "fmax",
        "fmin",
        "fmod",
        "fdim",
        "hypot",
        "atan2",
        "copysign",
        "step",
        "native_powr",
        "native_divide",
        "half_powr",
        "half_divide",
    ]
)
_THREE = frozenset(["mad", "fma", "mix", "smoothstep"])
_WHOLE_SECOND = frozenset(["pown", "ldexp", "rootn"])
_TESTS = frozenset(["isnan", "isinf", "isfinite", "isnormal", "signbit"])
_EITHER = {"min": 2, "max": 2, "clamp": 3, "abs": 1}

MATH = frozenset(
    (_ONE | _TWO | _WHOLE_SECOND)
    - {"fabs", "floor", "ceil", "round", "rint", "trunc", "sign", "fmax", "fmin", "copysign", "step"}
)
"""Those that cost many times an addition."""


def arity(function: str) -> int | None:
    """Give the number of arguments; None for what is no function of a form."""
    if function in _ONE | _TESTS:
        return 1
    if function in _TWO | _WHOLE_SECOND:
        return 2
    if function in _THREE:
        return 3
    return _EITHER.get(function)


def result(function: str, dtypes: Sequence[Dtype]) -> tuple[Dtype, tuple[Dtype, ...]]:
    """Give the dtype returned and those that the arguments are converted to."""
    dtype = dtypes[0]
    for d in dtypes[1:] if function not in _WHOLE_SECOND else ():
        dtype = common(dtype, d)
    if function in _EITHER and is_integer(dtype):
        dtype = promote(dtype)
        return dtype, (dtype,) * len(dtypes)
    if is_integer(dtype):
        dtype = "f32"
    if function in _TESTS:
        return "i32", (dtype,)
    if function in _WHOLE_SECOND:
        return dtype, (dtype, "i32")
    return dtype, (dtype,) * len(dtypes)
