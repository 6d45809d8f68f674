"""Integer index arithmetic: polynomials over names, coefficients, equality, simplification.

All of it assumes that no index wraps around, so that a cast between integer dtypes may be moved to the
variables of what it casts. What is no polynomial (a division, a loaded index) is one opaque name in it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod

from mb_targets.form.dtypes import common, is_integer, wrap
from mb_targets.form.nest import Call, Cast, Const, Expr, Load, Op, Select, Var
from mb_targets.form.traverse import children, transform, walk
from mb_targets.model import Dtype

Monomial = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of monomials with whole coefficients, none zero.

    Attributes:
        terms: Coefficient by monomial (sorted names); the constant's monomial is empty.
        atoms: What each name stands for, in the widest dtype it occurs in: a variable, a variable cast, or an
            expression that is no polynomial.
    """

    terms: Mapping[Monomial, int]
    atoms: Mapping[str, Expr]

    def plus(self, other: Polynomial, factor: int = 1) -> Polynomial:
        """Add a multiple of another polynomial."""
        terms = dict(self.terms)
        for m, c in other.terms.items():
            terms[m] = terms.get(m, 0) + factor * c
        return Polynomial({m: c for m, c in terms.items() if c}, _widest(self.atoms, other.atoms))

    def times(self, other: Polynomial) -> Polynomial:
        """Multiply two polynomials."""
        terms: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                key = tuple(sorted(m + n))
                terms[key] = terms.get(key, 0) + c * d
        return Polynomial({m: c for m, c in terms.items() if c}, _widest(self.atoms, other.atoms))


def polynomial(e: Expr) -> Polynomial:
    """Normalise an integer expression."""
    match e:
        case Const(value=v):
            return Polynomial({(): int(v)} if v else {}, {})
        case Cast(value=v, lanes=1) if is_integer(e.dtype) and is_integer(v.dtype):
            p = polynomial(v)
            return Polynomial(p.terms, {n: _widened(a, e.dtype) for n, a in p.atoms.items()})
        case Op(op="+" | "-", args=(a, b)) if is_integer(e.dtype):
            return polynomial(a).plus(polynomial(b), 1 if e.op == "+" else -1)
        case Op(op="neg", args=(a,)) if is_integer(e.dtype):
            return Polynomial({}, {}).plus(polynomial(a), -1)
        case Op(op="*", args=(a, b)) if is_integer(e.dtype):
            return polynomial(a).times(polynomial(b))
        case Op(op="<<", args=(a, Const(value=shift))) if is_integer(e.dtype) and 0 <= shift < 63:
            return polynomial(a).times(Polynomial({(): 1 << int(shift)}, {}))
        case _:
            name = e.name if isinstance(e, Var) else _key(e)
            return Polynomial({(name,): 1}, {name: e})


def _widened(atom: Expr, dtype: Dtype) -> Expr:
    if common(atom.dtype, dtype) == atom.dtype:
        return atom
    return Cast(atom.value if isinstance(atom, Cast) else atom, dtype)


def _widest(a: Mapping[str, Expr], b: Mapping[str, Expr]) -> dict[str, Expr]:
    return {**a, **{n: _widened(a[n], e.dtype) if n in a else e for n, e in b.items()}}


def _key(e: Expr) -> str:
    """Name an expression such that equal ones have equal names."""
    if isinstance(e, Var):
        return e.name
    if is_integer(e.dtype) and e.lanes == 1 and _is_arithmetic(e):
        return str(sorted(polynomial(e).terms.items()))
    parts = map(_key, children(e))
    match e:
        case Const(value=v):
            head = repr(float(v))
        case Load(buffer=b):
            head = b
        case Op(op=op):
            head = op
        case Call(function=f):
            head = f
        case _:
            head = type(e).__name__ + (str(e.number) if hasattr(e, "number") else "")
    return f"{head}:{e.dtype}x{e.lanes}({', '.join(parts)})"


def _is_arithmetic(e: Expr) -> bool:
    match e:
        case Const():
            return True
        case Cast(value=v):
            return is_integer(v.dtype)
        case Op(op=op):
            return op in {"+", "-", "*", "neg", "<<"} and not (
                op == "<<" and not isinstance(e.args[1], Const)
            )
        case _:
            return False


def equal(a: Expr, b: Expr) -> bool:
    """Tell whether two expressions are the same, integer ones as polynomials."""
    if is_integer(a.dtype) and is_integer(b.dtype):
        return polynomial(a).terms == polynomial(b).terms
    return _key(a) == _key(b)


def constant(e: Expr) -> int | None:
    """Give the value of an integer expression that is a constant; None for any other."""
    if not is_integer(e.dtype):
        return None
    terms = polynomial(e).terms
    return terms.get((), 0) if set(terms) <= {()} else None


def depends(e: Expr, names: Collection[str]) -> bool:
    """Tell whether any of the names, variables or buffers, occurs."""
    return any(
        (isinstance(x, Var) and x.name in names) or (isinstance(x, Load) and x.buffer in names)
        for x in walk(e)
    )


def substitute(e: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replace variables by expressions."""
    return transform(e, lambda x: values.get(x.name, x) if isinstance(x, Var) else x)


def split(e: Expr, name: str) -> tuple[Expr, Expr] | None:
    """Write an integer expression as ``coefficient * name + rest``; None where it is not affine in it."""
    p = polynomial(e)
    if any(n != name and depends(a, (name,)) for n, a in p.atoms.items()):
        return None
    if any(m.count(name) > 1 for m in p.terms):
        return None
    scaled = {tuple(n for n in m if n != name): c for m, c in p.terms.items() if name in m}
    rest = {m: c for m, c in p.terms.items() if name not in m}
    return _build(scaled, p.atoms, e.dtype), _build(rest, p.atoms, e.dtype)


def rebuilt(terms: Mapping[Monomial, int], atoms: Mapping[str, Expr]) -> Expr:
    """Write some terms of a polynomial as an expression."""
    return _build({m: c for m, c in terms.items() if c}, atoms, "i32")


def coefficient(e: Expr, name: str) -> Expr | None:
    """Give what ``name`` is multiplied by; None when the expression is not affine in it."""
    parts = split(e, name)
    return None if parts is None else parts[0]


def _build(terms: Mapping[Monomial, int], atoms: Mapping[str, Expr], dtype: Dtype) -> Expr:
    """Write terms as an expression: longest monomials first, the constant last."""
    order = sorted(terms.items(), key=lambda t: (-len(t[0]), t[1] < 0, t[0]))
    return total([(c, _product([atoms[n] for n in m])) for m, c in order if m], terms.get((), 0), dtype)


def _product(factors: list[Expr]) -> Expr:
    e = factors[0]
    for f in factors[1:]:
        e = Op("*", (e, f), common(e.dtype, f.dtype))
    return e


def total(addends: list[tuple[int, Expr]], offset: int, dtype: Dtype) -> Expr:
    """Add multiples of expressions and a constant, in this order but with no leading minus if avoidable."""
    addends = [a for a in addends if a[0] > 0][:1] + [
        a for i, a in enumerate(addends) if a[0] <= 0 or any(b[0] > 0 for b in addends[:i])
    ]
    e: Expr | None = None
    if offset > 0 and all(c < 0 for c, _ in addends):
        e, offset = Const(offset, dtype), 0
    for c, x in addends:
        if not c:
            continue
        if abs(c) != 1:
            x = Op("*", (Const(abs(c), x.dtype), x), common(x.dtype, x.dtype))
        if e is None:
            e = x if c > 0 else Op("neg", (x,), common(x.dtype, x.dtype))
        else:
            e = Op("+" if c > 0 else "-", (e, x), common(e.dtype, x.dtype))
    if e is None:
        return Const(wrap(offset, dtype), dtype)
    if offset:
        e = Op("+" if offset > 0 else "-", (e, Const(abs(offset), e.dtype)), common(e.dtype, e.dtype))
    return e


def simplify(e: Expr) -> Expr:
    """Fold constants and cancel terms, keeping the user's factored shape and order where nothing cancels."""
    return transform(e, _simplify_one)


def _simplify_one(e: Expr) -> Expr:
    match e:
        case Cast(value=v) if v.dtype == e.dtype and v.lanes == e.lanes:
            return v
        case Cast(value=Const(value=v), lanes=1):
            return _cast_constant(e, v)
        case Select(condition=Const(value=v), yes=y, no=n):
            chosen = y if v else n
            same = chosen.dtype == e.dtype and chosen.lanes == e.lanes
            return chosen if same else Cast(chosen, e.dtype, e.lanes)
        case Op(lanes=1) if all(is_integer(a.dtype) for a in e.args):
            return _simplify_integer(e)
        case Op(op="*" | "/", args=(a, Const(value=1))) if a.dtype == e.dtype and a.lanes == e.lanes:
            return a
        case Op(op="*", args=(Const(value=1), a)) if a.dtype == e.dtype and a.lanes == e.lanes:
            return a
        case _:
            return e


def _cast_constant(e: Cast, value: float) -> Expr:
    if is_integer(e.dtype):
        return Const(wrap(int(value), e.dtype), e.dtype) if abs(value) < 2**63 else e
    exact = not is_integer(e.value.dtype) or abs(value) <= 2048
    return Const(float(value), e.dtype) if exact else e


def _simplify_integer(e: Op) -> Expr:
    constants = [a for a in e.args if isinstance(a, Const)]
    if len(constants) == len(e.args):
        shift = e.op in {"<<", ">>"}
        dtype = constants[0].dtype if shift else common(constants[0].dtype, constants[-1].dtype)
        folded = _fold(e.op, [wrap(int(c.value), dtype) for c in constants])
        return e if folded is None else Const(wrap(folded, e.dtype), e.dtype)
    if e.op in {"+", "-", "*", "neg"}:
        return _same_dtype(_collect(e), e.dtype)
    return _same_dtype(_simplify_rest(e), e.dtype)


def _same_dtype(e: Expr, dtype: Dtype) -> Expr:
    if e.dtype == dtype:
        return e
    return Const(wrap(int(e.value), dtype), dtype) if isinstance(e, Const) else Cast(e, dtype)


def _fold(op: str, v: list[int]) -> int | None:
    """Compute an operator on constants as C does; None where C leaves it undefined."""
    if op in {"/", "%"}:
        if v[1] == 0:
            return None
        quotient = abs(v[0]) // abs(v[1]) * (1 if (v[0] < 0) == (v[1] < 0) else -1)
        return quotient if op == "/" else v[0] - quotient * v[1]
    if op in {"<<", ">>"}:
        if not 0 <= v[1] < 64:
            return None
        return v[0] << v[1] if op == "<<" else v[0] >> v[1]
    unary = {"neg": -v[0], "!": int(not v[0]), "~": ~v[0]}
    if op in unary:
        return unary[op]
    a, b = v
    return {
        "+": a + b, "-": a - b, "*": a * b, "<": int(a < b), "<=": int(a <= b), ">": int(a > b),
        ">=": int(a >= b), "==": int(a == b), "!=": int(a != b), "&&": int(bool(a and b)),
        "||": int(bool(a or b)), "&": a & b, "|": a | b, "^": a ^ b,
    }[op]  # fmt: skip


def _addends(e: Expr, factor: int = 1) -> list[tuple[int, Expr]]:
    """Flatten sums and constant factors of one dtype; constants come out with ``Const(1)``."""
    match e:
        case Const(value=v):
            return [(factor * int(v), Const(1, e.dtype))]
        case Op(op="+" | "-", args=(a, b)):
            return _addends(a, factor) + _addends(b, factor if e.op == "+" else -factor)
        case Op(op="neg", args=(a,)):
            return _addends(a, -factor)
        case Op(op="*", args=(a, b)):
            for x, y in ((a, b), (b, a)):
                if isinstance(x, Const):
                    return _addends(y, factor * int(x.value))
    return [(factor, e)]


def _collect(e: Op) -> Expr:
    """Add up like terms of a sum, or the constant factors of a product."""
    offset = 0
    seen: dict[str, tuple[int, Expr]] = {}
    for c, x in _addends(e):
        if isinstance(x, Const):
            offset += c
            continue
        key = _key(x)
        seen[key] = (seen.get(key, (0, x))[0] + c, x)
    addends = [t for t in seen.values() if t[0]]
    if len(addends) == 1 and e.op == "*" and addends[0][1] == e:
        return e
    expanded = polynomial(e)
    if len([m for m in expanded.terms if m]) < len(addends):
        return _build(expanded.terms, expanded.atoms, e.dtype)
    if e.op == "*":
        return _factored(e, addends, offset)
    return total(addends, offset, e.dtype)


def _factored(e: Op, addends: list[tuple[int, Expr]], offset: int) -> Expr:
    """Keep ``(x + 1) * 4`` as it stands; drop factors of one, gather constant factors in front."""
    constants = [x.value for x in e.args if isinstance(x, Const)]
    if not constants or (len(addends) == 1 and not offset) or 0 in constants:
        return total(addends, offset, e.dtype)
    others = [x for x in e.args if not isinstance(x, Const)]
    return others[0] if prod(constants) == 1 else e


def _simplify_rest(e: Op) -> Expr:
    match e:
        case Op(op="&&", args=(a, b)):
            for x, y in ((a, b), (b, a)):
                if isinstance(x, Const):
                    return _truth(y) if x.value else Const(0, e.dtype)
        case Op(op="||", args=(a, b)):
            for x, y in ((a, b), (b, a)):
                if isinstance(x, Const):
                    return Const(1, e.dtype) if x.value else _truth(y)
        case Op(op="/" | "%", args=(a, Const(value=v))) if v:
            p = polynomial(a)
            exact = not any(c % int(v) for c in p.terms.values())
            if exact and e.op == "%":
                return Const(0, e.dtype)
            if exact or v == 1:
                return a if v == 1 else _build({m: c // int(v) for m, c in p.terms.items()}, p.atoms, e.dtype)
        case Op(op="<<" | ">>", args=(a, Const(value=0))):
            return a
        case Op(op="<" | "<=" | ">" | ">=" | "==" | "!=", args=(a, b)) if equal(a, b) and a.dtype == b.dtype:
            return Const(int(e.op in {"<=", ">=", "=="}), e.dtype)
    return e


def _truth(e: Expr) -> Expr:
    """Make a value a truth value where it is not one already."""
    if isinstance(e, Op) and e.op in {"<", "<=", ">", ">=", "==", "!=", "&&", "||", "!"}:
        return e
    return Op("!=", (e, Const(0, e.dtype)), "i32")
