"""Pointers into a kernel's parameters, and the ids of its items, as values that can be followed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mb_targets.model import Dtype, Kernel
from mb_targets.opencl import elements
from mb_targets.opencl import polynomial as poly
from mb_targets.opencl.polynomial import Polynomial
from mb_targets.opencl.reaches import Pointer, Value


def parameters(kernel: Kernel, options: tuple[str, ...]) -> Iterator[tuple[str, Value]]:
    """Give what a kernel's parameters stand for at its first line."""
    for p in kernel.parameters:
        kind = elements.element(p.type_name, kernel.source, options)
        if p.space in ("global", "constant", "local"):
            yield p.name, typed(Pointer(p.name, poly.number(0), None), p.type_name, kind)
        else:
            whole = kind and kind[0][0] in "iu" and kind[1] == 1
            yield p.name, poly.name(p.name) if p.space == "value" and whole else None


def typed(pointer: Pointer, type_name: str, kind: tuple[Dtype, int] | None) -> Pointer:
    """Let a pointer point to another type; into elements of unknown size nobody knows the way."""
    if kind:
        return replace(pointer, dtype=kind[0], lanes=kind[1])
    known = type_name == "void"
    return replace(pointer, dtype=None, lanes=1, offset=pointer.offset if known else None)


def moved(base: Value, by: Value, sign: str) -> Pointer | None:
    """Add a pointer and a number, or take a number off; None for what is no pointer."""
    if isinstance(by, Pointer) and not isinstance(base, Pointer):
        base, by = by, base
    if not isinstance(base, Pointer):
        return None
    if not isinstance(by, Polynomial) or sign not in "+-":
        return base.moved(None)
    return base.moved(by if sign == "+" else poly.add(poly.number(0), by, -1))


def global_id(value: Polynomial, sizes: tuple[int, ...]) -> Polynomial:
    """Recognise ``group id * local size + local id`` as the global id."""
    terms = dict(value.terms)
    for d in range(3):
        group, local = (f"%w{d}",), (f"%l{d}",)
        times = terms.get(local, 0)
        named = tuple(sorted((f"L{d}", f"%w{d}")))
        counted = d < len(sizes) and times and terms.get(group) == times * sizes[d]
        if times and (terms.get(named) == times or counted):
            rest = [(p, n) for p, n in value.terms if p not in (group, named, local)]
            return poly.collect([*rest, ((f"%g{d}",), times)])
    return value
