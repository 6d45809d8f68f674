"""Guess what no source says of a launch, from the kernel's own indexing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import lcm, prod

from mb_targets import expression
from mb_targets.expression import Expression, ExpressionError
from mb_targets.model import ITEM_BYTES, Dtype, Kernel, Parameter, Role
from mb_targets.opencl import elements
from mb_targets.opencl import polynomial as poly
from mb_targets.opencl.accesses import walk
from mb_targets.opencl.expand import expanded
from mb_targets.opencl.facts import Facts, facts
from mb_targets.opencl.fragment import BufferPart, Fragment, SymbolPart, merge
from mb_targets.opencl.polynomial import Polynomial
from mb_targets.opencl.reaches import Access, Walk

_DEFAULTS = {1: 1 << 20, 2: 1024, 3: 512, 4: 128}
_PROBED = {1: 1 << 13, 2: 128, 3: 64}
_SMALL = (
    (re.compile(r"(?i)off|shift|base|begin|start"), 0),
    (re.compile(r"(?i)pad"), 0),
    (re.compile(r"(?i)inc[xy]?$|stride$|step|dilat|batch|^ld[abc]?_?inc"), 1),
    (re.compile(r"(?i)radius|halo"), 2),
    (re.compile(r"(?i)window|ksize|kernel|filter|taps|ntaps|^[kf][hwsxy]$"), 3),
)
_OTHER = 64
_LONG = 32
_GROUPS = {1: (64,), 2: (16, 4), 3: (16, 4, 1)}
_PROBES = ((1, 0), (61, 1), (7, 3), (1009, 5), (100_003, 7))


@dataclass(frozen=True, slots=True)
class _Context:
    """What is known while guessing: the kernel, what was said, what its accesses show, its work group."""

    kernel: Kernel
    said: Fragment
    found: Walk
    facts: Facts
    local: tuple[int, ...]
    sizes: tuple[str, ...]
    groups: dict[str, Expression]


def infer(kernel: Kernel, said: Fragment) -> Fragment:
    """Give what was said, completed by what the kernel shows.

    An extent that cannot be told is left as ``?``: a probe run can find it.
    """
    shown = facts(kernel)
    dims = len(said.global_size) if said.global_size else shown.dims
    local = _local(kernel, said, shown, dims)
    found = walk(kernel, local, said.options or ())
    sizes, own = _global(kernel, said, found, local, dims)
    context = _Context(kernel, said, found, shown, local, sizes, _launch_names(sizes, local, own))
    buffers = dict(_buffers(context))
    guess = Fragment(
        origin="inferred",
        global_size=sizes,
        local_size=tuple(map(str, local)),
        buffers=buffers,
        scalars={},
    )
    guess = replace(guess, symbols=_symbols(context, guess, own))
    return _with_roles(merge([said, guess]), buffers)


def _local(kernel: Kernel, said: Fragment, shown: Facts, dims: int) -> tuple[int, ...]:
    """Give the work group's size, empty where the runtime may choose."""
    if said.local_size is not None:
        numbers = {n: s.value for n, s in said.symbols.items() if s.value is not None}
        try:
            return tuple(int(expression.evaluate(s, numbers)) for s in said.local_size)
        except ExpressionError:
            return ()
    if shown.required_local:
        return shown.required_local[:dims]
    if said.global_size is not None and not (shown.local_memory or shown.barriers):
        return ()  # who states the launch without a group leaves it to the runtime
    cooperates = shown.local_memory or shown.barriers or "get_local_id" in shown.calls
    if not cooperates and not shown.calls & {"get_group_id", "get_local_size", "get_num_groups"}:
        return ()
    return _from_arrays(expanded(kernel, said.options or ()), dims) or _GROUPS[dims]


def _from_arrays(source: str, dims: int) -> tuple[int, ...]:
    """Guess the group from the shape of a local array: ``t[256]``, or ``t[16][17]`` for 16 by 16."""
    for match in re.finditer(r"\b(?:__)?local\b[^;*(){}]*?\w((?:\s*\[[^\]]+\])+)", source):
        try:
            shape = [int(expression.evaluate(s, {})) for s in re.findall(r"\[([^\]]+)\]", match[1])]
        except ExpressionError:
            continue
        if dims == 1 and len(shape) == 1 and 1 < shape[0] <= 1028:
            return (_without_halo(shape[0]),)
        side = _without_halo(min(shape) if len(shape) == 2 else round(shape[0] ** 0.5))
        if dims == 2 and 1 < side <= 32 and (len(shape) == 2 or side * side == shape[0]):
            return (side, side)
    return ()


def _without_halo(length: int) -> int:
    """A local array a little longer than a power of two holds a group of that size and its neighbours."""
    power = 1 << (length.bit_length() - 1)
    return power if length - power <= 4 < power else length


def _global(
    kernel: Kernel, said: Fragment, found: Walk, local: tuple[int, ...], dims: int
) -> tuple[tuple[str, ...], list[str]]:
    """Give the global sizes, and the names made for those that no scalar parameter tells."""
    if said.global_size is not None:
        return said.global_size, []
    sizes: list[str] = []
    own: list[str] = []
    scalars = _scalar_sizes(kernel, found)
    for d in range(dims):
        group = local[d] if local else 1
        guard = found.guards.get(f"%g{d}")
        groups = found.guards.get(f"%w{d}")
        tied = _row_length(found, f"%g{d}")
        if guard is not None and _readable(guard):
            sizes.append(_rounded(poly.written(guard), group))
        elif groups is not None and _readable(groups):
            sizes.append(_times(poly.written(groups), group))
        elif tied or (dims > 1 and len(scalars) == 1):
            sizes.append(tied or scalars[0])
        else:
            by_group = not any(f"%g{d}" in (a.index.names if a.index else ()) for a in found.accesses)
            name = _fresh(kernel, "groups" if by_group and group > 1 else "items", d, dims)
            own.append(name)
            sizes.append(_times(name, group) if name.startswith("groups") else name)
    return tuple(sizes), own


def _readable(value: Polynomial) -> bool:
    return not any(n[0] in "%@" or re.fullmatch(r"[GLW][0-2]", n) for n in value.names) and bool(value.terms)


def _rounded(size: str, group: int) -> str:
    if group == 1:
        return size
    tree = expression.parse(f"({size}+{group - 1})//{group}*{group}")
    return expression.text(expression.simplify(tree))


def _times(size: str, group: int) -> str:
    return expression.text(expression.simplify(expression.parse(f"({size})*{group}")))


def _fresh(kernel: Kernel, word: str, d: int, dims: int) -> str:
    name = word if dims == 1 else f"{word}_{'xyz'[d]}"
    while any(p.name == name for p in kernel.parameters):
        name += "_"
    return name


def _row_length(found: Walk, item: str) -> str:
    """Give the stride of the rows in which an id is the column: a scalar's name, or a number."""
    for access in found.accesses:
        terms = dict(access.index.terms) if access.index else {}
        if terms.get((item,)) != 1:
            continue
        for product, n in terms.items():
            scalars = [f for f in product if not f.startswith("%")]
            if n == 1 and len(product) == 2 and len(scalars) == 1 and scalars[0][0] != "@":
                return scalars[0] if not re.fullmatch(r"[GLW][0-2]", scalars[0]) else ""
            if n >= _LONG and len(product) == 1 and not scalars:
                return str(n)
    return ""


def _scalar_sizes(kernel: Kernel, found: Walk) -> list[str]:
    """List the scalar parameters that bound loops or indexes."""
    seen = [n for limit in (*found.guards.values(), *found.loops) for n in limit.names]
    seen += [n for a in found.accesses if a.reach for n in a.reach.names]
    names = {p.name for p in kernel.parameters if p.space == "value"}
    return list(dict.fromkeys(n for n in seen if n in names))


def _launch_names(sizes: tuple[str, ...], local: tuple[int, ...], own: list[str]) -> dict[str, Expression]:
    """Say what ``G0``, ``L0`` and ``W0`` are in terms of symbols."""
    known: dict[str, Expression] = {}
    for d in range(3):
        size = expression.parse(sizes[d]) if d < len(sizes) else expression.Number(1)
        group = local[d] if d < len(local) else 1
        known[f"G{d}"] = size
        known[f"L{d}"] = expression.Number(group)
        known[f"W{d}"] = _group_count(size, group)
    return known


def _group_count(size: Expression, group: int) -> Expression:
    match size:
        case expression.Binary("*", left, expression.Number(n)) if n == group:
            return left
        case _:
            return expression.simplify(expression.Binary("//", size, expression.Number(group)))


def _buffers(context: _Context) -> Iterator[tuple[str, BufferPart]]:
    indexed: dict[str, Expression] = {}
    parameters = [p for p in context.kernel.parameters if p.space in ("global", "constant", "local")]
    parts: dict[str, BufferPart] = {}
    for parameter in parameters:
        kind = _kind(context, parameter)
        if kind is not None:
            parts[parameter.name] = _buffer(context, parameter, kind, indexed)
    for name, largest in indexed.items():
        if name in parts and parts[name].extent != "?":
            high = expression.simplify(expression.Binary("-", largest, expression.Number(1)))
            parts[name] = replace(parts[name], low="0", high=expression.text(high))
    yield from parts.items()


def _buffer(
    context: _Context, parameter: Parameter, kind: tuple[Dtype, int], indexed: dict[str, Expression]
) -> BufferPart:
    accesses = [a for a in context.found.accesses if a.buffer == parameter.name]
    extent = _extent(context, accesses, kind[0], indexed) if accesses else expression.Number(max(1, kind[1]))
    role: Role = "local" if parameter.space == "local" else _role(parameter, accesses)
    if extent is None and role == "local":
        extent = expression.Number(kind[1] * prod(context.local or (_OTHER,)))
    written = "?" if extent is None else expression.text(extent)
    return BufferPart(kind[0], kind[1], written, role, origin="inferred")


def _role(parameter: Parameter, accesses: list[Access]) -> Role:
    writes = any(a.writes for a in accesses)
    reads = any(not a.writes for a in accesses)
    if parameter.const or (reads and not writes):
        return "in"
    return "out" if writes and not reads else "inout"


def _extent(
    context: _Context, accesses: list[Access], dtype: Dtype, indexed: dict[str, Expression]
) -> Expression | None:
    """Give the length that the farthest access needs, over the symbols; None where one is unknown."""
    reached: list[Expression] = []
    for access in accesses:
        if access.reach is None:
            return None
        through = [n[1:] for n in access.reach.names if n.startswith("@")]
        limits = dict(context.groups)
        for name in through:
            limits[f"@{name}"] = indexed.setdefault(name, _largest_value(context, name))
        length = _length(access.reach, ITEM_BYTES[dtype], limits)
        if length is None:
            return None
        reached.append(length)
    return _farthest(list(dict.fromkeys(reached)))


def _length(reach: Polynomial, item: int, limits: Mapping[str, Expression]) -> Expression | None:
    """Count the elements up to the last byte touched, with what limits say put in."""
    plain = {n: p for n, e in limits.items() if (p := poly.read(e)) is not None}
    size = poly.substitute(poly.add(reach, poly.number(1)), plain)
    if size is None:
        return None
    exact = poly.divide(size, item)
    whole = poly.expression(exact or poly.add(size, poly.number(item - 1)))
    if exact is None:
        whole = expression.Binary("//", whole, expression.Number(item))
    return expression.simplify(expression.substitute(_divisions(whole), limits))


def _largest_value(context: _Context, name: str) -> Expression:
    """Choose the largest element of an index buffer, plus one: its length, or the range of a small type."""
    parameter = next(p for p in context.kernel.parameters if p.name == name)
    kind = _kind(context, parameter)
    if kind and ITEM_BYTES[kind[0]] == 1:
        return expression.Number(256 if kind[0] == "u8" else 128)
    said = context.said.buffers.get(name)
    if said and said.extent != "?":
        return expression.parse(said.extent)
    own = [a.reach for a in context.found.accesses if a.buffer == name and a.reach is not None]
    plain = [r for r in own if not any(n.startswith("@") for n in r.names)]
    item = ITEM_BYTES[kind[0]] if kind else 1
    length = _length(plain[0], item, context.groups) if plain else None
    return length or expression.Number(_OTHER)


def _divisions(tree: Expression) -> Expression:
    """Names such as ``n/16`` stand for a division: make it one."""
    divided = {n: expression.parse(n) for n in expression.names(tree) if "/" in n}
    return expression.substitute(tree, divided) if divided else tree


def _farthest(lengths: list[Expression]) -> Expression:
    """Give the largest of several lengths: the one that is so at all sizes tried, else the maximum of all."""
    for length in lengths:
        if all(_at_least(length, other) for other in lengths):
            return length
    return expression.Extreme("max", tuple(lengths))


def _at_least(a: Expression, b: Expression) -> bool:
    names = (*expression.names(a), *expression.names(b))
    for start, step in _PROBES:
        values = {n: start + step * i for i, n in enumerate(sorted(set(names)))}
        try:
            if expression.evaluate(a, values) < expression.evaluate(b, values):
                return False
        except ExpressionError:
            return False
    return True


def _with_roles(parts: Fragment, guessed: Mapping[str, BufferPart]) -> Fragment:
    """A role or an extent that a comment leaves open is the one that the kernel shows."""
    merged = {
        name: replace(part, role=part.role or (guessed[name].role if name in guessed else None))
        for name, part in parts.buffers.items()
    }
    return replace(parts, buffers=merged)


def _symbols(context: _Context, guess: Fragment, own: list[str]) -> dict[str, SymbolPart]:
    """Give a value to every symbol that is used and has none."""
    said, found = context.said, context.found
    sizes = set(_scalar_sizes(context.kernel, found)) | set(own)
    extents = [b.extent for n, b in guess.buffers.items() if n not in said.buffers and b.extent != "?"]
    texts = extents if said.global_size is not None else [*context.sizes, *extents]
    sizes |= {n for t in texts for n in expression.names(t)}
    value = _DEFAULTS[_degree(context)]
    if any(b.extent == "?" for b in guess.buffers.values()):
        value = min(value, _PROBED[len(context.sizes)])
    floats = {p.name for p in context.kernel.parameters if _is_float(context, p)}
    scalars = [p.name for p in context.kernel.parameters if p.space == "value" and p.name not in said.scalars]
    made: dict[str, SymbolPart] = {}
    for name in dict.fromkeys([*scalars, *own, *sorted(sizes - said.scalars.keys())]):
        if name in floats:
            made[name] = SymbolPart(1e-5 if "eps" in name.lower() else 1.5, origin="inferred")
            continue
        small = next((n for pattern, n in _SMALL if pattern.search(name)), None)
        size = small if small is not None else value if name in sizes else _OTHER
        multiple = found.divisors.get(name)
        step = lcm(
            multiple or 1, *(n for s, n in zip(context.sizes, context.local, strict=False) if s == name)
        )
        made[name] = SymbolPart(-(-size // step) * step, None, None, multiple, "inferred")
    return made


def _degree(context: _Context) -> int:
    """Count the sizes that a launch's work is the product of."""
    long = any(limit.names or (limit.constant or 0) >= _LONG for limit in context.found.loops)
    return len(context.sizes) + long


def _is_float(context: _Context, parameter: Parameter) -> bool:
    kind = _kind(context, parameter)
    return parameter.space == "value" and kind is not None and kind[0][0] == "f"


def _kind(context: _Context, parameter: Parameter) -> tuple[Dtype, int] | None:
    """Give a parameter's element type; memory of no type is of that which it is first taken for."""
    kind = elements.element(parameter.type_name, context.kernel.source, context.said.options or ())
    if kind or parameter.type_name != "void":
        return kind
    taken = (a.dtype for a in context.found.accesses if a.buffer == parameter.name and a.dtype)
    first = next(taken, None)
    return (first, 1) if first else None
