"""Find the macros that a kernel needs and nothing defines: real files get them from their host's ``-D``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from mb_targets.model import Kernel
from mb_targets.opencl import elements, structure
from mb_targets.opencl.expand import active, defined, expanded
from mb_targets.opencl.tokens import blank, without_comments

_BUILT_IN = re.compile(
    r"(?:CLK|M|FLT|DBL|HALF|CHAR|SCHAR|UCHAR|SHRT|USHRT|INT|UINT|LONG|ULONG|FP|CL|HUGE|ATOMIC|memory|cl)_\w+"
    r"|INFINITY|NAN|NULL|MAXFLOAT|HUGE_VALF?|true|false|__\w+|barrier|printf"
)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_TYPE = re.compile(r"image\w*_t|sampler_t|event_t|queue_t|pipe|void|(?:struct|union|enum)\b.*")


def missing_macros(kernel: Kernel, options: tuple[str, ...] = ()) -> list[str]:
    """List names that are used as values or types and stand for nothing, in the order met.

    A source that includes others is not judged: they may define anything.
    """
    if _INCLUDE.search(kernel.source):
        return []
    source = expanded(kernel, options)
    root = structure.parse(source).root_node
    known = _outside(kernel, options) | {p.name for p in kernel.parameters} | {kernel.name}
    known |= {structure.text(source, n) for n in _declared(root)}
    used = [
        p.type_name for p in kernel.parameters if not elements.element(p.type_name, kernel.source, options)
    ]
    used += [structure.text(source, n) for n in _used(root)]
    return list(dict.fromkeys(n for n in used if n not in known and _may_be_macro(n)))


def _may_be_macro(name: str) -> bool:
    # A constructor such as `(float4)(x)` has its type where the C grammar expects a value.
    known = _TYPE.fullmatch(name) or _BUILT_IN.fullmatch(name) or elements.element(name, "")
    return bool(_WORD.fullmatch(name)) and not known


def _outside(kernel: Kernel, options: tuple[str, ...]) -> set[str]:
    """Give the words of the source around the kernel: functions, types, constants of the file."""
    around = kernel.source[: kernel.start] + kernel.source[kernel.end :]
    known = defined(kernel.source, options)
    return set(_WORD.findall(blank(active(without_comments(around), known)))) | set(known)


def _used(node: Node) -> Iterator[Node]:
    """Visit the identifiers that are used as values."""
    for child in node.named_children:
        if child.type == "identifier":
            called = node.type == "call_expression" and node.child_by_field_name("function") == child
            if not called and node.type not in _DECLARING:
                yield child
        elif child.type != "field_expression" or child.named_children:
            yield from _used(child)


_DECLARING = frozenset(
    {"declaration", "init_declarator", "pointer_declarator", "array_declarator", "parameter_declaration"}
    | {"function_declarator", "labeled_statement", "goto_statement", "ERROR"}
)


def _declared(node: Node) -> Iterator[Node]:
    """Visit the names that are declared."""
    for child in node.named_children:
        named = node.children_by_field_name("declarator")
        if child.type == "identifier" and node.type in _DECLARING and (child in named or not named):
            yield child
        yield from _declared(child)
