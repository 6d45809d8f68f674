"""The small expressions that launches are written in: parse, evaluate, substitute, simplify, print.

``+ - * / // %``, parentheses, integers, floats, names, ``min`` and ``max``. On whole numbers ``/`` and ``//``
both divide as C does on sizes, rounding down; ``/`` divides exactly only where one side is not whole. A name
that is bound to a whole float counts as an integer. Nothing is ever passed to ``eval``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Literal, TypeAlias

from mb_targets.errors import TargetError

BinaryOperator = Literal["+", "-", "*", "/", "//", "%"]
Style = Literal["plain", "c", "python"]

_TOKEN = re.compile(
    r"\s*(?:(\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\d+|\.\d+)|([A-Za-z_]\w*)|(//|[-+*/%(),]))"
)
_LEVEL = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2}
_DEEPEST = 60


class ExpressionError(TargetError):
    """An expression that does not parse or has no value; the message shows the text and the place."""


@dataclass(frozen=True, slots=True)
class Number:
    """A literal."""

    value: int | float


@dataclass(frozen=True, slots=True)
class Name:
    """A symbol."""

    name: str


@dataclass(frozen=True, slots=True)
class Binary:
    """Two operands and an operator."""

    op: BinaryOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Extreme:
    """``min`` or ``max`` of one or more operands."""

    function: Literal["min", "max"]
    arguments: tuple[Expression, ...]


Expression: TypeAlias = Number | Name | Binary | Extreme


@lru_cache(maxsize=4096)
def parse(text: str) -> Expression:
    """Parse an expression.

    Raises:
        ExpressionError: The text is not one; the message names the position, counted from 1.
    """
    return _Parser(text).whole()


def evaluate(expression: Expression | str, values: Mapping[str, float]) -> int | float:
    """Work out an expression.

    Raises:
        ExpressionError: A name has no value, or something is divided by zero.
    """
    tree = parse(expression) if isinstance(expression, str) else expression
    return _evaluate(tree, values)


def names(expression: Expression | str) -> tuple[str, ...]:
    """List the names used, each once, in the order they first stand."""
    tree = parse(expression) if isinstance(expression, str) else expression
    return tuple(dict.fromkeys(e.name for e in _walk(tree) if isinstance(e, Name)))


def substitute(expression: Expression, by: Mapping[str, Expression]) -> Expression:
    """Replace names by expressions."""
    match expression:
        case Name(name):
            return by.get(name, expression)
        case Binary(op, left, right):
            return Binary(op, substitute(left, by), substitute(right, by))
        case Extreme(function, arguments):
            return Extreme(function, tuple(substitute(a, by) for a in arguments))
        case _:
            return expression


def divisor(expression: Expression, known: Mapping[str, int] | None = None) -> int:
    """Give a number that divides an expression whatever its names stand for; 0 divides only 0 itself.

    Args:
        expression: What is divided.
        known: What names are multiples of.
    """
    match expression:
        case Number(value):
            return abs(int(value)) if value == value // 1 else 1
        case Name(name):
            return (known or {}).get(name, 1)
        case Binary("*", left, right):
            return divisor(left, known) * divisor(right, known)
        case Binary("+" | "-" | "%", left, right):
            return gcd(divisor(left, known), divisor(right, known))
        case Extreme(_, arguments):
            return gcd(*(divisor(a, known) for a in arguments))
        case _:
            return 1


def simplify(expression: Expression) -> Expression:
    """Fold constants and drop what does nothing; the value stays the same for all sizes from 0 on."""
    match expression:
        case Binary(op, left, right):
            return _simplify(op, simplify(left), simplify(right))
        case Extreme(function, arguments):
            distinct = tuple(dict.fromkeys(map(simplify, arguments)))
            return distinct[0] if len(distinct) == 1 else _folded(Extreme(function, distinct))
        case _:
            return expression


def text(expression: Expression, style: Style = "plain", outer: int = 0) -> str:
    """Print with the fewest parentheses.

    Args:
        expression: What to print.
        style: ``c`` writes every division as ``/`` and ``min`` as a conditional; ``python`` writes every
            division as ``//``, which is right for sizes; ``plain`` parses back to the same expression.
        outer: Strength of the operator around it: 0 none, 1 a sum, 2 a product.
    """
    match expression:
        case Number(value):
            return str(value) if value >= 0 or outer == 0 else f"({value})"
        case Name(name):
            return name
        case Extreme(function, arguments):
            return _extreme(function, [text(a, style) for a in arguments], style)
        case Binary(op, left, right):
            level = _LEVEL[op]
            sign = _sign(op, style)
            written = f"{text(left, style, level)} {sign} {text(right, style, level + 1)}"
            if style == "plain":
                written = f"{text(left, style, level)}{sign}{text(right, style, level + 1)}"
            return f"({written})" if level < outer else written


def _sign(op: BinaryOperator, style: Style) -> str:
    if op in ("/", "//"):
        return {"plain": op, "c": "/", "python": "//"}[style]
    return op


def _extreme(function: str, arguments: list[str], style: Style) -> str:
    if style != "c":
        return f"{function}({', '.join(arguments)})"
    so_far = arguments[0]
    for argument in arguments[1:]:
        sign = "<" if function == "min" else ">"
        so_far = f"(({so_far}) {sign} ({argument}) ? ({so_far}) : ({argument}))"
    return so_far


def _walk(expression: Expression) -> Iterator[Expression]:
    yield expression
    match expression:
        case Binary(_, left, right):
            yield from _walk(left)
            yield from _walk(right)
        case Extreme(_, arguments):
            for argument in arguments:
                yield from _walk(argument)


def _evaluate(expression: Expression, values: Mapping[str, float]) -> int | float:
    match expression:
        case Number(value):
            return value
        case Name(name):
            if name not in values:
                raise ExpressionError(f"{name!r} has no value here; give it one, as in `{name}=1024`")
            value = values[name]
            return int(value) if value == value // 1 else value
        case Extreme(function, arguments):
            worked = [_evaluate(a, values) for a in arguments]
            return min(worked) if function == "min" else max(worked)
        case Binary(op, left, right):
            return _compute(op, _evaluate(left, values), _evaluate(right, values), expression)


def _compute(op: BinaryOperator, a: float, b: float, whole: Expression) -> int | float:
    if op == "+":
        return a + b
    if op == "-":
        return a - b
    if op == "*":
        return a * b
    if b == 0:
        raise ExpressionError(f"`{text(whole)}` divides by zero at these sizes")
    if op == "%":
        return a % b
    if op == "//" or (isinstance(a, int) and isinstance(b, int)):
        return a // b
    return a / b


def _simplify(op: BinaryOperator, left: Expression, right: Expression) -> Expression:
    match op, left, right:
        case ("+", Number(0), e) | ("*", Number(1), e):
            return e
        case ("+" | "-", e, Number(0)) | ("*" | "/" | "//", e, Number(1)):
            return e
        case ("*", Number(0), _) | ("*", _, Number(0)):
            return Number(0)
        case ("%", _, Number(1)):
            return Number(0)
        case _:
            return _folded(Binary(op, left, right))


def _folded(expression: Binary | Extreme) -> Expression:
    operands = (
        expression.arguments if isinstance(expression, Extreme) else (expression.left, expression.right)
    )
    if not all(isinstance(o, Number) for o in operands):
        return expression
    try:
        return Number(_evaluate(expression, {}))
    except ExpressionError:
        return expression


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._depth = 0
        self._kind, self._token, self._start = "", "", 0
        self._advance()

    def whole(self) -> Expression:
        """Parse all of the text."""
        tree = self._sum()
        if self._kind:
            raise self._error(f"did not expect {self._token!r}")
        return tree

    def _advance(self) -> None:
        found = _TOKEN.match(self._source, self._at)
        if not found:
            rest = self._source[self._at :]
            self._start = self._at + len(rest) - len(rest.lstrip())
            self._kind, self._token = "", ""
            if rest.strip():
                raise self._error(f"did not expect {rest.strip()[0]!r}")
            return
        self._kind = ("number", "name", "sign")[(found.lastindex or 1) - 1]
        self._token = found.group(found.lastindex or 1)
        self._start = found.start(found.lastindex or 1)
        self._at = found.end()

    def _sum(self) -> Expression:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error("is nested too deeply")
        tree = self._chain(("+", "-"), lambda: self._chain(("*", "/", "//", "%"), self._unary))
        self._depth -= 1
        return tree

    def _chain(self, signs: tuple[BinaryOperator, ...], operand: Callable[[], Expression]) -> Expression:
        tree = operand()
        while self._kind == "sign":
            op = next((s for s in signs if s == self._token), None)
            if op is None:
                break
            self._advance()
            tree = Binary(op, tree, operand())
        return tree

    def _unary(self) -> Expression:
        if self._token == "-":
            self._advance()
            operand = self._unary()
            return Number(-operand.value) if isinstance(operand, Number) else Binary("-", Number(0), operand)
        return self._atom()

    def _atom(self) -> Expression:
        token = self._token
        if self._kind == "number":
            self._advance()
            return Number(int(token) if token.isdigit() else float(token))
        if self._kind == "name":
            self._advance()
            if self._token != "(":
                return Name(token)
            if token == "min":
                return Extreme("min", self._arguments())
            if token == "max":
                return Extreme("max", self._arguments())
            raise self._error(f"does not know the function {token!r}; there are min and max")
        if token == "(":
            self._advance()
            inner = self._sum()
            self._expect(")")
            return inner
        raise self._error(f"expected a number, a name or '(' before {token!r}" if token else "ends too early")

    def _arguments(self) -> tuple[Expression, ...]:
        self._expect("(")
        found = [self._sum()]
        while self._token == ",":
            self._advance()
            found.append(self._sum())
        if len(found) < 2:
            raise self._error("min and max take two values or more")
        self._expect(")")
        return tuple(found)

    def _expect(self, sign: str) -> None:
        if self._token != sign:
            raise self._error(f"expected {sign!r}" + (f" before {self._token!r}" if self._token else ""))
        self._advance()

    def _error(self, what: str) -> ExpressionError:
        return ExpressionError(f"the expression `{self._source}`, at position {self._start + 1}: {what}")
