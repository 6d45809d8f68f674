"""Sums of products of names with whole coefficients: what index arithmetic comes down to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mb_targets.expression import Binary, Expression, Name, Number, text

_MOST_TERMS = 64


@dataclass(frozen=True, slots=True)
class Polynomial:
    """Coefficients by product; a product is its names, sorted, and the empty one is the constant."""

    terms: tuple[tuple[tuple[str, ...], int], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names used, sorted."""
        return tuple(sorted({n for product, _ in self.terms for n in product}))

    @property
    def constant(self) -> int | None:
        """The value, where it is a number."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def name(self) -> str:
        """The name that it is and nothing more, else an empty string."""
        ((product, n),) = self.terms if len(self.terms) == 1 else (((), 0),)
        return product[0] if len(product) == 1 and n == 1 else ""


def collect(terms: Iterable[tuple[tuple[str, ...], int]]) -> Polynomial:
    """Add up terms of equal products."""
    summed: dict[tuple[str, ...], int] = {}
    for product, n in terms:
        key = tuple(sorted(product))
        summed[key] = summed.get(key, 0) + n
    return Polynomial(tuple(sorted((p, n) for p, n in summed.items() if n)))


def number(value: int) -> Polynomial:
    """Make a constant."""
    return Polynomial((((), value),) if value else ())


def name(of: str) -> Polynomial:
    """Make a single name."""
    return Polynomial((((of,), 1),))


def add(a: Polynomial, b: Polynomial, sign: int = 1) -> Polynomial:
    """Add, or subtract with ``sign`` -1."""
    return collect([*a.terms, *((p, sign * n) for p, n in b.terms)])


def multiply(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """Multiply; None where the result has grown past use."""
    if len(a.terms) * len(b.terms) > _MOST_TERMS:
        return None
    return collect(((*p, *q), n * m) for p, n in a.terms for q, m in b.terms)


def divide(a: Polynomial, by: int) -> Polynomial | None:
    """Divide by a number; None where that leaves a rest."""
    return (
        Polynomial(tuple((p, n // by) for p, n in a.terms)) if all(n % by == 0 for _, n in a.terms) else None
    )


def substitute(a: Polynomial, by: Mapping[str, Polynomial]) -> Polynomial | None:
    """Replace names; None where the result has grown past use."""
    total = number(0)
    for product, n in a.terms:
        term = number(n)
        for factor in product:
            larger = multiply(term, by.get(factor, name(factor)))
            if larger is None:
                return None
            term = larger
        total = add(total, term)
    return total


def read(tree: Expression) -> Polynomial | None:
    """Read an expression of sums and products; None for one that divides or compares."""
    match tree:
        case Number(value):
            return number(value) if isinstance(value, int) else None
        case Name(of):
            return name(of)
        case Binary("+" | "-" | "*" as op, left, right):
            a, b = read(left), read(right)
            if a is None or b is None:
                return None
            return multiply(a, b) if op == "*" else add(a, b, 1 if op == "+" else -1)
        case _:
            return None


def expression(a: Polynomial) -> Expression:
    """Write as an expression, positive terms first, longest products first."""
    ordered = sorted(a.terms, key=lambda t: (t[1] < 0, -len(t[0]), t[0]))
    total: Expression = Number(0)
    for product, n in ordered:
        size = abs(n)
        term: Expression = Number(size)
        for factor in product:
            term = Name(factor) if term == Number(1) else Binary("*", term, Name(factor))
        if total == Number(0):
            total = term if n > 0 else Binary("-", Number(0), term)
        else:
            total = Binary("+" if n > 0 else "-", total, term)
    return total


def written(a: Polynomial) -> str:
    """Write as text."""
    return text(expression(a))
