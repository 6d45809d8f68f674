"""How far the accesses of a kernel reach: the values that the walk over its tree deals in.

Names in the results: ``G0`` to ``G2`` and ``L0`` to ``L2`` are sizes of the launch, ``W0`` to ``W2`` its
numbers of work groups, ``@x`` is one more than the largest element of the integer buffer ``x``, the others
are the kernel's scalar parameters. Names that begin with ``%`` are ids and loop variables; they have bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mb_targets.model import ITEM_BYTES, Dtype
from mb_targets.opencl import polynomial as poly
from mb_targets.opencl.polynomial import Polynomial


@dataclass(frozen=True, slots=True)
class Access:
    """One place where a parameter is read or written.

    Attributes:
        buffer: The parameter.
        index: The index in elements before bounds are put in; None where it is unknown.
        reach: The last byte touched by any item, in sizes and scalars only; None where it is unknown.
        writes: Whether it writes; a compound assignment both reads and writes and is noted twice.
        dtype: The type that the memory is taken for here, None where it is none of ours.
    """

    buffer: str
    index: Polynomial | None
    reach: Polynomial | None
    writes: bool
    dtype: Dtype | None


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer into a parameter.

    Attributes:
        buffer: The parameter.
        offset: Bytes from its start; None where that is unknown.
        dtype: The type of what it points to here, None for void and for types that are none of ours.
        lanes: Elements of a vector type.
    """

    buffer: str
    offset: Polynomial | None
    dtype: Dtype | None
    lanes: int = 1

    @property
    def step(self) -> int:
        """Bytes of what it points to."""
        return self.lanes * (ITEM_BYTES[self.dtype] if self.dtype else 1)

    def moved(self, by: Polynomial | None) -> Pointer:
        """Move by a number of steps; by an unknown number, its place is unknown."""
        way = poly.multiply(by, poly.number(self.step)) if by is not None else None
        if self.offset is None or way is None:
            return replace(self, offset=None)
        return replace(self, offset=poly.add(self.offset, way))


@dataclass(frozen=True, slots=True)
class Bound:
    """Smallest and largest value of an id or loop variable; None where unknown."""

    low: Polynomial | None
    high: Polynomial | None


@dataclass
class Walk:
    """What the walk has learned so far.

    Attributes:
        accesses: In the order met.
        guards: For each id, what it was compared against as ``id < bound``.
        loops: Bounds of loops that scalars decide.
        divisors: For each scalar that is divided by a number, the number.
    """

    accesses: list[Access] = field(default_factory=list)
    guards: dict[str, Polynomial] = field(default_factory=dict)
    loops: list[Polynomial] = field(default_factory=list)
    divisors: dict[str, int] = field(default_factory=dict)


Value = Polynomial | Pointer | None
Bounds = dict[str, Bound]


def guarded(index: Polynomial, sums: Sequence[tuple[Polynomial, Polynomial]]) -> Polynomial:
    """Put the largest value of a sum that is guarded in its place: ``y + j`` in ``(y + j) * w + x``."""
    for value, high in sums:
        factors = {tuple(n for n in product if not n.startswith("%")) for product, _ in index.terms}
        for factor in sorted(factors, key=len, reverse=True):
            scaled = poly.multiply(value, Polynomial(((factor, 1),)))
            wanted = dict(scaled.terms) if scaled else {}
            have = dict(index.terms)
            ids = [p for p in wanted if any(n.startswith("%") for n in p)]
            ratios = {have.get(p, 0) / wanted[p] for p in ids}
            ratio = ratios.pop() if len(ratios) == 1 else 0
            limit = poly.multiply(high, Polynomial(((factor, 1),)))
            if scaled and limit and ratio > 0 and ratio == int(ratio):
                index = poly.add(index, poly.add(limit, scaled, -1), int(ratio))
                break
    return index


def reach(index: Polynomial, bounds: Bounds) -> Polynomial | None:
    """Give the largest value of an index, each bounded name taken to its end of the range."""
    for _ in range(40):
        bounded = [n for n in index.names if n.startswith("%")]
        if not bounded:
            return index
        name = max(bounded, key=lambda n: list(bounds).index(n) if n in bounds else -1)
        limit = bounds.get(name)
        total = poly.number(0)
        for product, n in index.terms:
            end = (limit.high if n > 0 else limit.low) if limit else None
            if name in product and end is None:
                return None
            term = Polynomial(((product, n),))
            larger = poly.substitute(term, {name: end}) if end is not None and name in product else term
            if larger is None:
                return None
            total = poly.add(total, larger)
        index = total
    return None
