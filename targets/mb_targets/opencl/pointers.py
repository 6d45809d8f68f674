"""Pointers into a kernel's parameters, and the ids of its items, as values that can be followed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mb_targets.model import Kernel
from mb_targets.opencl import elements
from mb_targets.opencl import polynomial as poly
from mb_targets.opencl.polynomial import Polynomial
from mb_targets.opencl.reaches import Pointer, Value


def parameters(kernel: Kernel, options: tuple[str, ...]) -> Iterator[tuple[str, Value]]:
    """Give what a kernel's parameters stand for at its first line."""
    for p in kernel.parameters:
        kind = elements.element(p.type_name, kernel.source, options)
        if p.space in ("global", "constant", "local"):
            yield p.name, Pointer(p.name, poly.number(0), kind[1] if kind else 1)
        else:
            whole = kind and kind[0][0] in "iu" and kind[1] == 1
            yield p.name, poly.name(p.name) if p.space == "value" and whole else None


def moved(base: Value, by: Value, sign: str) -> Pointer | None:
    """Move a pointer by a number of its elements; by an unknown number, its place is unknown."""
    if isinstance(by, Pointer) and not isinstance(base, Pointer):
        base, by = by, base
    if not isinstance(base, Pointer):
        return None
    if not isinstance(by, Polynomial) or base.offset is None or sign not in "+-":
        return replace(base, offset=None)
    step = poly.multiply(by, poly.number(base.lanes))
    return replace(base, offset=poly.add(base.offset, step, 1 if sign == "+" else -1) if step else None)


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
