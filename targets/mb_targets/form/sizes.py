"""What a launch says of a kernel's sizes: extents over its scalar parameters, the work-group size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

from mb_targets.expression import Binary, Expression, ExpressionError, Extreme, Name, Number, parse
from mb_targets.form.affine import constant, equal, simplify, substitute
from mb_targets.form.conversions import arithmetic
from mb_targets.form.dtypes import common, is_integer
from mb_targets.form.nest import Call, Const, Expr, Op, Operator, Var
from mb_targets.form.traverse import walk
from mb_targets.model import LaunchSpec

_OPERATORS: dict[str, Operator] = {"+": "+", "-": "-", "*": "*", "/": "/", "//": "/", "%": "%"}


def expression(text: str) -> Expr | None:
    """Read a launch's expression over its symbols; None where it is not whole or does not parse."""
    try:
        return _expression(parse(text))
    except ExpressionError:
        return None


def _expression(e: Expression) -> Expr | None:
    match e:
        case Number(value=v):
            return Const(int(v), "i32") if v == int(v) else None
        case Name(name=n):
            return Var(n, "i32")
        case Binary(op=op, left=a, right=b):
            left, right = _expression(a), _expression(b)
            return None if left is None or right is None else arithmetic(_OPERATORS[op], left, right)
        case Extreme(function=f, arguments=arguments):
            values = [_expression(a) for a in arguments]
            result = values[0]
            for other in values[1:]:
                result = None if result is None or other is None else Call(f, (result, other), "i32")
            return result


def local_size(launch: LaunchSpec | None) -> tuple[int | None, ...]:
    """Give the launch's work-group size by dimension, None where it is not fixed."""
    if launch is None or launch.local_size is None:
        return (None, None, None)
    sizes = [constant(e) if (e := expression(t)) is not None else None for t in launch.local_size]
    return (*sizes, 1, 1, 1)[:3]


@dataclass(frozen=True, slots=True)
class Extents:
    """How many items or groups a launch has, over a kernel's scalar parameters.

    Attributes:
        launch: The launch; None where there is none.
        scalars: The kernel's scalar parameters.
    """

    launch: LaunchSpec | None
    scalars: Sequence[Var]

    def items(self, dim: int) -> Expr | None:
        """Count the items of a dimension."""
        if self.launch is None or dim >= len(self.launch.global_size):
            return None
        return self._over_scalars(expression(self.launch.global_size[dim]))

    def groups(self, dim: int, size: int) -> Expr | None:
        """Count the groups of a dimension whose groups have ``size`` items."""
        if self.launch is None or dim >= len(self.launch.global_size):
            return None
        total = expression(self.launch.global_size[dim])
        if total is None:
            return None
        return self._over_scalars(simplify(arithmetic("/", simplify(total), Const(size, "i32"))))

    def multiples(self) -> dict[str, int]:
        """Give what each whole scalar is a multiple of, by the launch: work groups are whole, too."""
        found: dict[str, int] = {}
        for a in self.launch.arguments if self.launch is not None else ():
            symbol = expression(a.extent) if a.role == "scalar" else None
            if isinstance(symbol, Var):
                found[a.name] = self._multiple(symbol.name)
        return found

    def _multiple(self, symbol: str) -> int:
        assert self.launch is not None
        known = next((s.multiple for s in self.launch.symbols if s.name == symbol), 1)
        for size, local in zip(self.launch.global_size, local_size(self.launch), strict=False):
            if expression(size) == Var(symbol, "i32") and local is not None:
                known = lcm(known, local)
        return known

    def _over_scalars(self, e: Expr | None) -> Expr | None:
        if e is None or self.launch is None:
            return None
        meanings = {a.name: expression(a.extent) for a in self.launch.arguments if a.role == "scalar"}
        whole = [
            (v, m) for v in self.scalars if is_integer(v.dtype) and (m := meanings.get(v.name)) is not None
        ]
        for variable, meaning in whole:
            if not isinstance(meaning, Const) and equal(meaning, e):
                return variable
        symbols = {m.name: v for v, m in reversed(whole) if isinstance(m, Var)}
        if any(isinstance(x, Var) and x.name not in symbols for x in walk(e)):
            return None
        return _retyped(substitute(e, dict(symbols)))


def _retyped(e: Expr) -> Expr:
    """Give each operator the dtype that C computes it in."""
    match e:
        case Op(op=op, args=(a, b)):
            return arithmetic(op, _retyped(a), _retyped(b))
        case Call(function=f, args=(a, b)):
            return Call(f, (a, b), common(a.dtype, b.dtype))
        case _:
            return e
