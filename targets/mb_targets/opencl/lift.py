"""Lift OpenCL C kernels to forms."""

from __future__ import annotations

import re
from functools import lru_cache

from tree_sitter import Node

from mb_targets.form.dialect import (
    C_NUMBERS,
    C_TYPES,
    GLOBAL,
    GROUP,
    GROUPS,
    LOCAL,
    LOCAL_SIZE,
    Dialect,
    Space,
    identifier,
)
from mb_targets.form.lifting import Work
from mb_targets.form.lifting import lift as lift_function
from mb_targets.form.nest import Call, Const, DoesNotLift, Expr, Form
from mb_targets.model import Dtype, Kernel, LaunchSpec
from mb_targets.opencl import structure

_IDS = {
    "get_global_id": GLOBAL, "get_local_id": LOCAL, "get_group_id": GROUP, "get_local_size": LOCAL_SIZE,
    "get_num_groups": GROUPS, "get_enqueued_local_size": LOCAL_SIZE,
}  # fmt: skip
_CL_TYPES: dict[str, Dtype] = {
    **C_TYPES, "uchar": "u8", "ushort": "u16", "uint": "u32", "ulong": "u64", "half": "f16",
    "intptr_t": "i64", "uintptr_t": "u64",
}  # fmt: skip
_CL_NUMBERS: dict[str, tuple[float, Dtype]] = {
    **C_NUMBERS,
    **{f"{n}_F": (v, "f32") for n, (v, d) in C_NUMBERS.items() if n.startswith("M_")},
    "LONG_MAX": (2**63 - 1, "i64"), "ULONG_MAX": (2**64 - 1, "u64"), "CHAR_BIT": (8, "i32"),
}  # fmt: skip
_REQUIRED = re.compile(r"reqd_work_group_size\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_SINGLE = "-cl-single-precision-constant"


@lru_cache(maxsize=256)
def lift(kernel: Kernel, launch: LaunchSpec) -> Form | DoesNotLift:
    """Lift a kernel as launched; the answer for a kernel and launch is kept."""
    required = _REQUIRED.search(kernel.text)
    sizes = tuple(t.strip() for t in required.group(1).split(",")) if required else ()
    return lift_function(Work(kernel.name, kernel.source, launch, sizes, _SINGLE in launch.options), DIALECT)


def _identify(source: str, node: Node) -> Expr | None:
    if node.type != "call_expression":
        return None
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if function is None or arguments is None or arguments.named_child_count != 1:
        return None
    name, dim = structure.text(source, function), structure.text(source, arguments.named_children[0])
    if dim not in {"0", "1", "2"}:
        return None
    if name == "get_global_size":
        return Call(name, (Const(int(dim), "u32"),), "u64")
    if name == "get_global_offset":
        return Const(0, "u64")
    return identifier(_IDS[name], int(dim)) if name in _IDS else None


def _space(source: str, node: Node) -> Space:
    for qualifier in node.children:
        match structure.qualifier(source, qualifier) if qualifier.type == "type_qualifier" else "":
            case "global":
                return "global"
            case "local":
                return "local"
            case "constant":
                return "constant"
            case _:
                pass
    return "private"


DIALECT = Dialect(
    parse=structure.parse,
    space=_space,
    identify=_identify,
    types=_CL_TYPES,
    numbers=_CL_NUMBERS,
    barriers=frozenset({"barrier", "work_group_barrier"}),
)
