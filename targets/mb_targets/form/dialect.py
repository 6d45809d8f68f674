"""What one C-like language calls the things that every one of them has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tree_sitter import Node, Tree

from mb_targets.form.nest import Expr, Var
from mb_targets.model import Dtype

Space = Literal["global", "constant", "local", "private"]

GLOBAL, LOCAL, GROUP, LOCAL_SIZE, GROUPS = "@global", "@local", "@group", "@size", "@groups"
"""Prefixes of the names that ids have until they are resolved; the dimension follows."""

C_TYPES: Mapping[str, Dtype] = {
    "char": "i8", "signed char": "i8", "unsigned char": "u8", "short": "i16", "unsigned short": "u16",
    "int": "i32", "unsigned": "u32", "unsigned int": "u32", "long": "i64", "long int": "i64",
    "unsigned long": "u64", "long long": "i64", "unsigned long long": "u64", "float": "f32", "double": "f64",
    "size_t": "u64", "ptrdiff_t": "i64", "bool": "i32", "_Bool": "i32", "int8_t": "i8", "uint8_t": "u8",
    "int16_t": "i16", "uint16_t": "u16", "int32_t": "i32", "uint32_t": "u32", "int64_t": "i64",
    "uint64_t": "u64",
}  # fmt: skip

C_NUMBERS: Mapping[str, tuple[float, Dtype]] = {
    "INFINITY": (float("inf"), "f32"), "HUGE_VALF": (float("inf"), "f32"), "NAN": (float("nan"), "f32"),
    "FLT_MAX": (3.4028234663852886e38, "f32"), "MAXFLOAT": (3.4028234663852886e38, "f32"),
    "FLT_MIN": (1.1754943508222875e-38, "f32"), "FLT_EPSILON": (1.1920928955078125e-07, "f32"),
    "HUGE_VAL": (float("inf"), "f64"), "DBL_MAX": (1.7976931348623157e308, "f64"),
    "DBL_MIN": (2.2250738585072014e-308, "f64"), "DBL_EPSILON": (2.220446049250313e-16, "f64"),
    "M_PI": (3.141592653589793, "f64"), "M_E": (2.718281828459045, "f64"),
    "M_SQRT1_2": (0.7071067811865476, "f64"), "M_SQRT2": (1.4142135623730951, "f64"),
    "M_2_SQRTPI": (1.1283791670955126, "f64"), "M_LN2": (0.6931471805599453, "f64"),
    "INT_MAX": (2**31 - 1, "i32"), "INT_MIN": (-(2**31), "i32"), "UINT_MAX": (2**32 - 1, "u32"),
    "true": (1, "i32"), "false": (0, "i32"), "NULL": (0, "i32"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dialect:
    """A C-like language.

    Attributes:
        parse: Parse a source without directives.
        space: Where a declaration puts what it declares, or what it points to, by the source and its node.
        identify: Read an expression as a work-item id or size, None for any other.
        types: Dtype by type name.
        functions: The form's function by the language's, where the names differ.
        numbers: Named constants of the language.
        barriers: Functions that synchronise a work group.
    """

    parse: Callable[[str], Tree]
    space: Callable[[str, Node], Space]
    identify: Callable[[str, Node], Expr | None]
    types: Mapping[str, Dtype] = field(default_factory=lambda: C_TYPES)
    functions: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, tuple[float, Dtype]] = field(default_factory=lambda: C_NUMBERS)
    barriers: frozenset[str] = frozenset()


def identifier(kind: str, dim: int, dtype: Dtype = "u64") -> Var:
    """Make the variable of an id or size."""
    return Var(f"{kind}{dim}", dtype)


class Unliftable(Exception):
    """The kernel has no form; the message says why, to the user."""
