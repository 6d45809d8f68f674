"""C's literals, operators and conversions as expressions of the form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mb_targets.form.affine import polynomial
from mb_targets.form.dialect import GLOBAL, GROUP, LOCAL, LOCAL_SIZE, Unliftable, identifier
from mb_targets.form.dtypes import common, is_integer, promote
from mb_targets.form.nest import Cast, Const, Expr, Op, Operator
from mb_targets.model import Dtype

_FLOAT = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)([fFhHlL]?)")
_INTEGER = re.compile(r"([-+]?)(0[xX][\da-fA-F]+|\d+)([uUlL]*)")
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})


def number(text: str, single: bool = False) -> Const:
    """Read a literal; ``single`` takes unsuffixed floating ones for ``float``."""
    if found := _INTEGER.fullmatch(text):
        sign, digits, suffix = found.groups()
        octal = len(digits) > 1 and digits[0] == "0" and digits[1] not in "xX"
        value = int(digits, 8 if octal else 0) * (-1 if sign == "-" else 1)
        long, unsigned = "l" in suffix.lower() or abs(value) > 0xFFFFFFFF, "u" in suffix.lower()
        if not unsigned and not long and abs(value) > 0x7FFFFFFF:
            unsigned, long = digits[:2] in {"0x", "0X"}, digits[:2] not in {"0x", "0X"}
        dtypes: dict[tuple[bool, bool], Dtype] = {
            (False, False): "i32", (False, True): "u32", (True, False): "i64", (True, True): "u64",
        }  # fmt: skip
        plain = text.lstrip("-").isdecimal() and not octal
        return Const(value, dtypes[long, unsigned], "" if plain else text)
    if found := _FLOAT.fullmatch(text):
        suffix_dtype: dict[str, Dtype] = {"f": "f32", "h": "f16", "": "f32" if single else "f64", "l": "f64"}
        return Const(float(found.group(1)), suffix_dtype[found.group(2).lower()], text)
    raise Unliftable(f"does not know the number {text}")


def convert(e: Expr, dtype: Dtype) -> Expr:
    """Convert a value as an assignment does."""
    if e.dtype == dtype:
        return e
    if isinstance(e, Const) and (not is_integer(dtype) or e.value == int(e.value)):
        named = e.text if e.text.isidentifier() and is_integer(e.dtype) else ""
        return Const(int(e.value) if is_integer(dtype) else float(e.value), dtype, named)
    return Cast(e, dtype)


def arithmetic(op: Operator, a: Expr, b: Expr) -> Expr:
    """Apply a binary operator with C's conversions; those to a floating dtype are written out."""
    if op in {"&&", "||"}:
        return Op(op, (truth(a), truth(b)), "i32")
    if op in {"<<", ">>"}:
        return Op(op, (a, b), promote(a.dtype))
    dtype = common(a.dtype, b.dtype)
    if not is_integer(dtype):
        if op in {"%", "&", "|", "^"}:
            raise Unliftable(f"applies {op} to floating values")
        a, b = convert(a, dtype), convert(b, dtype)
    return Op(op, (a, b), "i32" if op in _COMPARISONS else dtype)


def as_global(e: Expr, local_size: Sequence[int | None]) -> Expr:
    """Recognise ``group * size + local`` in a sum as the global id."""
    if not (isinstance(e, Op) and e.op == "+" and is_integer(e.dtype)):
        return e
    addends = list(_addends(e))
    for k, size in enumerate(local_size):
        pair = _pair(addends, k, size)
        if pair is not None:
            start, place, factor = pair
            whole: Expr = identifier(GLOBAL, k, e.dtype)
            if factor != 1:
                whole = arithmetic("*", Const(factor, e.dtype), whole)
            addends[start] = whole
            del addends[place]
            total = addends[0]
            for x in addends[1:]:
                total = arithmetic("+", total, x)
            return as_global(total, local_size)
    return e


def _pair(addends: Sequence[Expr], dim: int, size: int | None) -> tuple[int, int, int] | None:
    """Find ``factor * group * size`` and ``factor * local`` among addends."""
    group, local, symbol = f"{GROUP}{dim}", f"{LOCAL}{dim}", f"{LOCAL_SIZE}{dim}"
    terms = [polynomial(x).terms for x in addends]
    for place, own in enumerate(terms):
        factor = own.get((local,), 0)
        if len(own) != 1 or not factor:
            continue
        for start, other in enumerate(terms):
            by_number = size is not None and dict(other) == {(group,): factor * size}
            if by_number or dict(other) == {(group, symbol): factor}:
                return start, place, factor
    return None


def _addends(e: Expr) -> Iterator[Expr]:
    if isinstance(e, Op) and e.op == "+":
        for a in e.args:
            yield from _addends(a)
    else:
        yield e


def truth(e: Expr) -> Expr:
    """Make a truth value of a value."""
    if isinstance(e, Op) and (e.op in _COMPARISONS or e.op in {"&&", "||", "!"}):
        return e
    if isinstance(e, Const) and is_integer(e.dtype):
        return Const(int(e.value != 0), "i32")
    return Op("!=", (e, Const(0 if is_integer(e.dtype) else 0.0, e.dtype)), "i32")


def negated(e: Expr) -> Expr:
    """Give the opposite of a truth value."""
    opposite: dict[str, Operator] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
    match e:
        case Op(op="!", args=(a,)):
            return truth(a)
        case Op(op="&&" | "||" as op, args=(a, b)):
            return Op("||" if op == "&&" else "&&", (negated(a), negated(b)), "i32")
        case Op(op=op, args=(a, b)) if op in opposite and (is_integer(a.dtype) or op in {"==", "!="}):
            return Op(opposite[op], (a, b), "i32")  # not for floating order: a NaN is neither
        case _:
            return Op("!", (e,), "i32")
