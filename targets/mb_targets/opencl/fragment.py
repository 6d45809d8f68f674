"""Parts of a launch as one source states them: a comment, the settings, host code; and how parts add up.

The items are those of the ``// mb:`` grammar, whoever writes them: ``global=(N,M)``, ``N=1024:1..4096``,
``A=out f32[N*M]{0..1}``, ``N%4``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from mb_targets import expression
from mb_targets.errors import TargetError
from mb_targets.expression import ExpressionError
from mb_targets.model import Dtype, Origin, Role
from mb_targets.opencl import elements
from mb_targets.opencl.tokens import split

Fold = Literal["sum", "max", "min"]

_BUFFER = re.compile(
    r"(?:(?P<role>inout|in|out|local)(?::(?P<fold>sum|max|min))?\s+)?(?P<type>\w+)\s*\[(?P<extent>.*)\]"
    r"\s*(?:\{(?P<range>.*)\})?",
    re.DOTALL,
)
_NAME = re.compile(r"[A-Za-z_]\w*")


class FragmentError(TargetError):
    """A part of a launch that cannot be read; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class SymbolPart:
    """What one source says of a symbol; None for what it does not say."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    multiple: int | None = None
    origin: Origin = "inferred"


@dataclass(frozen=True, slots=True)
class BufferPart:
    """What one source says of a buffer or local-memory parameter."""

    dtype: Dtype
    lanes: int
    extent: str
    role: Role | None = None
    fold: Fold | None = None
    low: str = ""
    high: str = ""
    origin: Origin = "inferred"


@dataclass(frozen=True, slots=True)
class Fragment:
    """What one source says of a launch.

    Attributes:
        origin: The source; of parts put together, that of the NDRange.
        global_size: Expressions; None for not said.
        local_size: Expressions; empty leaves it to the runtime, None for not said.
        options: Compiler options; None for not said.
        tolerance: Relative error allowed; None for not said.
        symbols: By name.
        buffers: By parameter name.
        scalars: Expressions by parameter name, or by a name that only stands for another expression.
    """

    origin: Origin
    global_size: tuple[str, ...] | None = None
    local_size: tuple[str, ...] | None = None
    options: tuple[str, ...] | None = None
    tolerance: float | None = None
    symbols: dict[str, SymbolPart] = field(default_factory=dict)
    buffers: dict[str, BufferPart] = field(default_factory=dict)
    scalars: dict[str, str] = field(default_factory=dict)


def add(fragment: Fragment, key: str, value: str, sign: str = "=") -> Fragment:
    """Add one item, ``key=value`` or ``key%value``.

    Raises:
        FragmentError: The value is not one of the key.
    """
    if not value:
        raise FragmentError(f"`{key}` has no value; write one, as in {key}=1024")
    if sign == "%":
        return _with_symbol(fragment, key, SymbolPart(multiple=_positive(key, value)))
    if key == "global":
        return replace(fragment, global_size=_sizes(key, value))
    if key == "local":
        return replace(fragment, local_size=() if value == "none" else _sizes(key, value))
    if key == "opts":
        return replace(fragment, options=_options(value))
    if key == "tol":
        return replace(fragment, tolerance=_number(key, value))
    if _BUFFER.fullmatch(value):
        part = replace(_buffer(key, value), origin=fragment.origin)
        return replace(fragment, buffers={**fragment.buffers, key: part})
    return _symbol_or_scalar(fragment, key, value)


def merge(fragments: Iterable[Fragment]) -> Fragment:
    """Put parts together, the first that says a thing deciding it."""
    listed = list(fragments)
    merged = listed[-1]
    for part in reversed(listed[:-1]):
        nothing = SymbolPart()
        symbols = {
            name: _over(part.symbols.get(name, nothing), merged.symbols.get(name, nothing))
            for name in [*part.symbols, *(n for n in merged.symbols if n not in part.symbols)]
        }
        merged = Fragment(
            origin=part.origin if part.global_size is not None else merged.origin,
            global_size=part.global_size if part.global_size is not None else merged.global_size,
            local_size=part.local_size if part.local_size is not None else merged.local_size,
            options=part.options if part.options is not None else merged.options,
            tolerance=part.tolerance if part.tolerance is not None else merged.tolerance,
            symbols=symbols,
            buffers={**merged.buffers, **part.buffers},
            scalars={**merged.scalars, **part.scalars},
        )
    return merged


def _over(first: SymbolPart, second: SymbolPart) -> SymbolPart:
    return SymbolPart(
        value=second.value if first.value is None else first.value,
        low=second.low if first.low is None else first.low,
        high=second.high if first.high is None else first.high,
        multiple=second.multiple if first.multiple is None else first.multiple,
        origin=second.origin if first.value is None else first.origin,
    )


def _symbol_or_scalar(fragment: Fragment, key: str, value: str) -> Fragment:
    stated, colon, bounds = value.partition(":")
    if not colon and ".." in value:
        stated, bounds = "", value
    low, high = _bounds(key, bounds) if bounds else (None, None)
    if not stated.strip():
        return _with_symbol(fragment, key, SymbolPart(None, low, high))
    tree = _parsed(key, stated)
    if expression.names(tree):
        if bounds:
            raise FragmentError(f"`{key}` follows other sizes and takes no range; give those one")
        return replace(fragment, scalars={**fragment.scalars, key: expression.text(tree)})
    return _with_symbol(fragment, key, SymbolPart(_evaluated(key, stated), low, high))


def _with_symbol(fragment: Fragment, name: str, part: SymbolPart) -> Fragment:
    known = fragment.symbols.get(name, SymbolPart())
    symbols = {**fragment.symbols, name: replace(_over(part, known), origin=fragment.origin)}
    return replace(fragment, symbols=symbols)


def _buffer(key: str, value: str) -> BufferPart:
    found = _BUFFER.fullmatch(value)
    kind = elements.written(found.group("type")) if found else None
    if not found or not kind:
        name = found.group("type") if found else value
        raise FragmentError(f"`{key}` has the unknown type {name!r}; write one such as f32, i32 or u8")
    dtype, lanes = kind
    extent = _parsed(key, found.group("extent"))
    low, high = _range(key, found.group("range"))
    return BufferPart(
        dtype=dtype,
        lanes=lanes,
        extent=expression.text(expression.simplify(expression.Binary("*", expression.Number(lanes), extent))),
        role=cast("Role | None", found.group("role")),
        fold=cast("Fold | None", found.group("fold")),
        low=low,
        high=high,
    )


def _range(key: str, text: str | None) -> tuple[str, str]:
    if text is None:
        return "", ""
    low, dots, high = text.partition("..")
    if not dots:
        raise FragmentError(f"`{key}` has the range {{{text}}}; write it as {{lowest..highest}}")
    return expression.text(_parsed(key, low)), expression.text(_parsed(key, high))


def _bounds(key: str, text: str) -> tuple[float, float]:
    low, dots, high = text.partition("..")
    if not dots:
        raise FragmentError(f"`{key}` has the range `{text}`; write it as {key}=1024:lowest..highest")
    lowest, highest = _evaluated(key, low), _evaluated(key, high)
    if lowest > highest:
        raise FragmentError(f"`{key}` has the empty range `{text}`; put the smaller value first")
    return lowest, highest


def _sizes(key: str, value: str) -> tuple[str, ...]:
    inner = value[1:-1] if value.startswith("(") and value.endswith(")") else value
    parts = [part for part in split(inner) if part]
    if not 1 <= len(parts) <= 3:
        raise FragmentError(f"`{key}` takes one to three sizes in parentheses, as in {key}=(N,M)")
    return tuple(expression.text(_parsed(key, part)) for part in parts)


def _options(value: str) -> tuple[str, ...]:
    try:
        unquoted = shlex.split(value)
        return tuple(word for part in unquoted for word in shlex.split(part))
    except ValueError as error:
        raise FragmentError(f'`opts` is {value}; write it in quotes, as in opts="-DTILE=16"') from error


def _number(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise FragmentError(f"`{key}` takes a number, as in {key}=1e-4") from error


def _positive(key: str, value: str) -> int:
    if not value.isdigit() or int(value) < 1:
        raise FragmentError(f"`{key}%{value}`: a multiple is a whole number from 1 on, as in {key}%16")
    return int(value)


def _parsed(key: str, text: str) -> expression.Expression:
    try:
        return expression.parse(text.strip())
    except ExpressionError as error:
        raise FragmentError(f"`{key}`: {error}") from error


def _evaluated(key: str, text: str) -> float:
    try:
        return expression.evaluate(_parsed(key, text), {})
    except ExpressionError as error:
        raise FragmentError(f"`{key}`: {error}") from error
