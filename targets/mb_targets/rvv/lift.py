"""Lift scalar C functions to forms: loops stay loops, there are no parallel axes."""

from __future__ import annotations

from functools import cache

import tree_sitter_c
from tree_sitter import Language, Node, Parser, Tree

from mb_targets.form.dialect import C_NUMBERS, C_TYPES, Dialect, Space
from mb_targets.form.lifting import Work
from mb_targets.form.lifting import lift as lift_function
from mb_targets.form.nest import DoesNotLift, Form

_SINGLE = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "tanh", "erf", "erfc", "pow", "fmax", "fmin", "fmod",
    "fabs", "floor", "ceil", "round", "rint", "trunc", "hypot", "atan2", "copysign",
)  # fmt: skip


def lift(name: str, source: str) -> Form | DoesNotLift:
    """Lift a function."""
    return lift_function(Work(name, source), DIALECT)


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_c.language()))


def _parse(source: str) -> Tree:
    # offsets of a form's front end count characters: what is not ASCII becomes one byte
    return _parser().parse(source.encode("ascii", "replace"))


def _space(source: str, node: Node) -> Space:
    return "private"


DIALECT = Dialect(
    parse=_parse,
    space=_space,
    identify=lambda source, node: None,
    types=C_TYPES,
    functions={**{f"{name}f": name for name in _SINGLE}, "fmaf": "fma"},
    numbers=C_NUMBERS,
)
