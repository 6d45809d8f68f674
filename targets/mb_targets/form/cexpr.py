"""Expressions of C: syntax nodes to expressions of the form, typed by C's rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import cast, get_args

from tree_sitter import Node

from mb_targets.form.affine import constant, simplify, substitute
from mb_targets.form.cnodes import child
from mb_targets.form.conversions import arithmetic, as_global, convert, number, truth
from mb_targets.form.dialect import LOCAL_SIZE, Dialect, Unliftable
from mb_targets.form.dtypes import common, is_integer, promote
from mb_targets.form.functions import arity, result
from mb_targets.form.nest import Call, Const, Expr, Load, Op, Operator, Select
from mb_targets.form.scope import Forgotten, Pointer, Scalar, Scopes
from mb_targets.model import Dtype

_VECTOR = re.compile(r"(?:u?(?:char|short|int|long)|float|double|half)(?:2|3|4|8|16)")
_CONVERT = re.compile(r"(?:convert_)?(u?(?:char|short|int|long)|float|double|half|size_t)(?:_rtz)?")
_BINARY = frozenset(get_args(Operator)) - {"neg", "!", "~"}


class Expressions:
    """Reads expressions of one function.

    Args:
        source: The text that the nodes' offsets refer to.
        dialect: The language.
        numbers: Text of each macro that is one number.
        scopes: What names mean; shared with whoever reads the statements.
        local_size: Work-group size by dimension, None where not known.
        call: Reads the call of a function that the source defines; gives None for any other.
        single: Whether unsuffixed literals are ``float``.

    Attributes:
        conditional: Above zero while what is read may not be evaluated at all.
    """

    def __init__(
        self,
        source: str,
        dialect: Dialect,
        numbers: Mapping[str, str],
        scopes: Scopes,
        local_size: tuple[int | None, ...],
        call: Callable[[str, list[Node]], Expr | None],
        single: bool,
    ) -> None:
        self._source = source
        self._dialect = dialect
        self._numbers = numbers
        self._scopes = scopes
        self._local_size = local_size
        self._call_defined = call
        self._single = single
        self._values: dict[str, Expr] = {
            f"{LOCAL_SIZE}{k}": Const(n, "u64") for k, n in enumerate(local_size) if n is not None
        }
        self.conditional = 0

    def text(self, node: Node) -> str:
        """Give a node's source text."""
        return self._source[node.start_byte : node.end_byte]

    def read(self, node: Node) -> Expr:
        """Read an expression that has a value.

        Raises:
            Unliftable: It uses what the form has no words for.
        """
        if (found := self._dialect.identify(self._source, node)) is not None:
            return found
        method = getattr(self, f"_{node.type}", None)
        if method is None:
            raise Unliftable(f"uses {node.type.replace('_', ' ')}: {self._short(node)}")
        return cast(Expr, method(node))

    def pointer(self, node: Node) -> Pointer | None:
        """Read an expression that is a pointer or array; None for any other."""
        match node.type:
            case "identifier":
                meaning = self._scopes.find(self.text(node))
                return meaning if isinstance(meaning, Pointer) else None
            case "parenthesized_expression":
                return self.pointer(node.named_children[0])
            case "cast_expression":
                inner = self.pointer(child(node, "value"))
                if inner is not None:
                    raise Unliftable(f"casts a pointer: {self._short(node)}")
                return None
            case "pointer_expression" if self.text(child(node, "operator")) == "&":
                return self._address(child(node, "argument"))
            case "binary_expression":
                return self._moved(node)
            case "subscript_expression":
                base = self.pointer(child(node, "argument"))
                return self._row(base, node) if base is not None and base.dims else None
            case _:
                return None

    def place(self, node: Node) -> Load | None:
        """Read an expression that names an element of a buffer or array; None for any other."""
        match node.type:
            case "parenthesized_expression":
                return self.place(node.named_children[0])
            case "subscript_expression":
                base = self.pointer(child(node, "argument"))
                if base is None:
                    name = self.text(child(node, "argument"))
                    raise Unliftable(
                        f"indexes {name}, which is neither a parameter nor declared in the kernel"
                    )
                base = self._row(base, node)
            case "pointer_expression" if self.text(child(node, "operator")) == "*":
                found = self.pointer(child(node, "argument"))
                if found is None:
                    raise Unliftable(f"reads through {self._short(node)}")
                base = found
            case _:
                return None
        if base.dims:
            raise Unliftable(f"uses a whole row as a value: {self._short(node)}")
        return Load(base.buffer, base.offset, base.dtype)

    def remember(self, name: str, value: Expr) -> None:
        """Note the value of a variable that never changes, for ``known``."""
        self._values[name] = self.known(value)

    def known(self, e: Expr) -> Expr:
        """Put in what is known of sizes and variables, and simplify."""
        return simplify(substitute(e, self._values))

    def dtype(self, type_name: str) -> Dtype:
        """Look up a type's name."""
        found = self._dialect.types.get(
            " ".join(w for w in type_name.split() if w not in {"const", "volatile"})
        )
        if found is None:
            raise Unliftable(f"uses {type_name}")
        return found

    def _short(self, node: Node) -> str:
        text = " ".join(self.text(node).split())
        return text if len(text) <= 40 else text[:37] + "..."

    def _address(self, node: Node) -> Pointer | None:
        base = self.pointer(node)
        if base is not None:
            return base
        place = self.place(node)
        return Pointer(place.buffer, place.index, place.dtype) if place is not None else None

    def _row(self, base: Pointer, node: Node) -> Pointer:
        # grammars for C++ allow a list of indices
        index = self.read(node.child_by_field_name("index") or child(node, "indices").named_children[0])
        if not is_integer(index.dtype):
            raise Unliftable(f"indexes with a floating value: {self._short(node)}")
        for length in base.dims:
            index = self._sum("*", index, Const(length, "i32"))
        return Pointer(base.buffer, self._plus(base.offset, index), base.dtype, base.dims[1:])

    def _moved(self, node: Node) -> Pointer | None:
        op = self.text(child(node, "operator"))
        left, right = child(node, "left"), child(node, "right")
        base = self.pointer(left)
        if base is None and op == "+":
            base, right = self.pointer(right), left
        if base is None:
            return None
        if op not in {"+", "-"} or base.dims or self.pointer(right) is not None:
            raise Unliftable(f"computes with pointers: {self._short(node)}")
        return self.moved(base, cast(Operator, op), self.read(right))

    def moved(self, base: Pointer, op: Operator, by: Expr) -> Pointer:
        """Move a pointer by some elements."""
        offset = self._plus(base.offset, by) if op == "+" else self._sum("-", base.offset, by)
        return Pointer(base.buffer, offset, base.dtype)

    def _plus(self, offset: Expr, index: Expr) -> Expr:
        if constant(offset) == 0:
            return index
        return offset if constant(index) == 0 else self._sum("+", offset, index)

    def _sum(self, op: Operator, a: Expr, b: Expr) -> Expr:
        return as_global(arithmetic(op, a, b), self._local_size)

    def _number_literal(self, node: Node) -> Expr:
        return number(self.text(node), self._single)

    def _true(self, node: Node) -> Expr:
        return Const(1, "i32")

    def _false(self, node: Node) -> Expr:
        return Const(0, "i32")

    def _null(self, node: Node) -> Expr:
        raise Unliftable("uses a null pointer")

    def _identifier(self, node: Node) -> Expr:
        name = self.text(node)
        match self._scopes.find(name):
            case Scalar(value=value):
                return value
            case Pointer():
                raise Unliftable(f"uses pointer {name} as a value")
            case Forgotten(reason=reason):
                raise Unliftable(reason)
        if name in self._numbers:
            return self._macro(name, self._numbers[name])
        if name in self._dialect.numbers:
            return Const(*self._dialect.numbers[name], name)
        raise Unliftable(f"uses {name}, which nothing here defines")

    def _macro(self, name: str, body: str) -> Const:
        plain = re.sub(r"[()\s]", "", body)
        negative = plain.count("-", 0, 1) == 1
        found = number(plain.lstrip("-"), self._single)
        return Const(-found.value if negative else found.value, found.dtype, name)

    def _parenthesized_expression(self, node: Node) -> Expr:
        inner = [c for c in node.named_children if c.type != "comment"]
        if len(inner) != 1:
            raise Unliftable(f"does not know {self._short(node)}")
        return self.read(inner[0])

    _condition_clause = _parenthesized_expression

    def _binary_expression(self, node: Node) -> Expr:
        op = self.text(child(node, "operator"))
        left, right = child(node, "left"), child(node, "right")
        type_name = self._cast_in_disguise(left)
        if type_name is not None and op in {"-", "+"}:
            value = self.read(right)
            return convert(self._negative(value) if op == "-" else value, type_name)
        if op not in _BINARY:
            raise Unliftable(f"uses operator {op}")
        first = self.read(left)
        self.conditional += op in {"&&", "||"}
        second = self.read(right)
        self.conditional -= op in {"&&", "||"}
        return self._sum(cast(Operator, op), first, second)

    def _cast_in_disguise(self, node: Node) -> Dtype | None:
        """The grammar takes ``(uint) - x`` for a difference, and ``(uint)(x)`` for a call."""
        if node.type != "parenthesized_expression" or node.named_child_count != 1:
            return None
        inner = node.named_children[0]
        name = self.text(inner)
        if inner.type != "identifier" or self._scopes.find(name) is not None:
            return None
        return self._dialect.types.get(name)

    def _negative(self, e: Expr) -> Expr:
        if isinstance(e, Const):
            text = f"-{e.text}" if e.text and not e.text.startswith("-") else ""
            return Const(-e.value, e.dtype, text)
        return Op("neg", (e,), promote(e.dtype))

    def _unary_expression(self, node: Node) -> Expr:
        op = self.text(child(node, "operator"))
        value = self.read(child(node, "argument"))
        match op:
            case "-":
                return self._negative(value)
            case "+":
                return convert(value, promote(value.dtype))
            case "!":
                return Op("!", (truth(value),), "i32")
            case "~":
                return Op("~", (value,), promote(value.dtype))
        raise Unliftable(f"uses operator {op}")

    def _conditional_expression(self, node: Node) -> Expr:
        condition = truth(self.read(child(node, "condition")))
        self.conditional += 1
        yes, no = self.read(child(node, "consequence")), self.read(child(node, "alternative"))
        self.conditional -= 1
        dtype = common(yes.dtype, no.dtype)
        return Select(condition, convert(yes, dtype), convert(no, dtype), dtype)

    def _cast_expression(self, node: Node) -> Expr:
        return convert(self.read(child(node, "value")), self.dtype(self.text(child(node, "type"))))

    def _subscript_expression(self, node: Node) -> Expr:
        place = self.place(node)
        assert place is not None
        return place

    def _pointer_expression(self, node: Node) -> Expr:
        place = self.place(node)
        if place is None:
            raise Unliftable(f"takes an address as a value: {self._short(node)}")
        return place

    def _field_expression(self, node: Node) -> Expr:
        raise Unliftable(f"uses a vector's or structure's member: {self._short(node)}")

    def _assignment_expression(self, node: Node) -> Expr:
        raise Unliftable(f"assigns inside an expression: {self._short(node)}")

    _update_expression = _assignment_expression

    def _call_expression(self, node: Node) -> Expr:
        function, arguments = child(node, "function"), child(node, "arguments").named_children
        arguments = [a for a in arguments if a.type != "comment"]
        disguised = self._cast_in_disguise(function)
        if disguised is not None and len(arguments) == 1:
            return convert(self.read(arguments[0]), disguised)
        name = self.text(function).strip("() ")
        if _VECTOR.fullmatch(name) or name.startswith(("vload", "vstore")):
            raise Unliftable(f"uses {name}")
        own = self._call_defined(name, arguments)
        return own if own is not None else self._built_in(name, arguments)

    def _built_in(self, name: str, nodes: list[Node]) -> Expr:
        function = self._dialect.functions.get(name, name)
        if (found := _CONVERT.fullmatch(function)) and len(nodes) == 1:
            return convert(self.read(nodes[0]), self.dtype(found.group(1)))
        if function == "select" and len(nodes) == 3:
            no, yes, condition = map(self.read, nodes)
            return Select(truth(condition), yes, no, common(yes.dtype, no.dtype))
        if function in {"mul24", "mad24"}:
            values = [self.read(n) for n in nodes]
            product = self._sum("*", values[0], values[1])
            return product if function == "mul24" else self._sum("+", product, values[2])
        if arity(function) != len(nodes):
            raise Unliftable(f"calls {name}")
        values = [self.read(n) for n in nodes]
        dtype, wanted = result(function, [v.dtype for v in values])
        return Call(function, tuple(map(convert, values, wanted)), dtype)
