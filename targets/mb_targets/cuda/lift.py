"""Lift CUDA C kernels to forms."""

from __future__ import annotations

from functools import cache

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser, Tree

from mb_targets.form.dialect import C_TYPES, GROUP, GROUPS, LOCAL, LOCAL_SIZE, Dialect, Space, identifier
from mb_targets.form.lifting import Work
from mb_targets.form.lifting import lift as lift_function
from mb_targets.form.nest import DoesNotLift, Expr, Form
from mb_targets.model import LaunchSpec

_IDS = {"threadIdx": LOCAL, "blockIdx": GROUP, "blockDim": LOCAL_SIZE, "gridDim": GROUPS}
_DIMS = {"x": 0, "y": 1, "z": 2}
_SINGLE = (
    "exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt",
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "erf", "erfc", "pow",
    "fmax", "fmin", "fmod", "fabs", "floor", "ceil", "round", "rint", "trunc", "hypot", "atan2",
    "copysign",
)  # fmt: skip
_FUNCTIONS = {
    **{f"{name}f": name for name in _SINGLE}, "fmaf": "fma",
    **{f"__{name}f": f"native_{name}" for name in ("exp", "exp10", "log", "log2", "log10", "sin", "cos")},
    "__powf": "native_powr",
    "__fdividef": "native_divide", "__frsqrt_rn": "rsqrt", "__fmaf_rn": "fma",
}  # fmt: skip


def lift(name: str, source: str, launch: LaunchSpec | None = None) -> Form | DoesNotLift:
    """Lift a kernel; the launch's global size counts threads, its local size is the block's."""
    return lift_function(Work(name, source, launch), DIALECT)


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_cuda.language()))


def _parse(source: str) -> Tree:
    # offsets of a form's front end count characters: what is not ASCII becomes one byte
    return _parser().parse(source.encode("ascii", "replace"))


def _identify(source: str, node: Node) -> Expr | None:
    if node.type != "field_expression":
        return None
    variable, _, member = source[node.start_byte : node.end_byte].partition(".")
    kind = _IDS.get(variable.strip())
    return identifier(kind, _DIMS[member.strip()], "u32") if kind is not None else None


def _space(source: str, node: Node) -> Space:
    words = source[node.start_byte : node.end_byte].split("=")[0].split()
    if "__shared__" in words:
        return "local"
    return "constant" if "__constant__" in words else "private"


DIALECT = Dialect(
    parse=_parse,
    space=_space,
    identify=_identify,
    types=C_TYPES,
    functions=_FUNCTIONS,
    barriers=frozenset({"__syncthreads"}),
)
