"""A whole function of C: its parameters, its body, and the helper functions that it calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tree_sitter import Node

from mb_targets.form import cloops
from mb_targets.form.cexpr import Expressions
from mb_targets.form.cfront import Statements
from mb_targets.form.cnodes import RETURN, child, exits, function_declarator, functions, innermost, inside
from mb_targets.form.conversions import convert, truth
from mb_targets.form.dialect import Dialect, Space, Unliftable
from mb_targets.form.nest import Array, Const, Expr, Select, Stmt, Var
from mb_targets.form.scope import ZERO, Pointer, Scalar
from mb_targets.model import Dtype

_DEEPEST_CALL = 8


@dataclass(frozen=True, slots=True)
class Declared:
    """A parameter: ``space`` is where it points to, None for a scalar."""

    name: str
    dtype: Dtype
    space: Space | None


@dataclass(frozen=True, slots=True)
class Function:
    """A function as read.

    Attributes:
        parameters: In order.
        body: Its statements.
        aliases: The user's variable for each id, where there is one.
    """

    parameters: tuple[Declared, ...]
    body: tuple[Stmt, ...]
    aliases: Mapping[str, Var]


class Reader(Statements):
    """Reads one function of a source.

    Args:
        source: The text that the tree's offsets refer to.
        root: Its tree.
        dialect: The language.
        numbers: Text of each macro that is one number.
        local_size: Work-group size by dimension, None where not known.
        single: Whether unsuffixed floating literals are ``float``.
    """

    def __init__(
        self,
        source: str,
        root: Node,
        dialect: Dialect,
        numbers: Mapping[str, str],
        local_size: tuple[int | None, ...],
        single: bool = False,
    ) -> None:
        super().__init__(source, dialect, numbers, local_size, single)
        self._functions = {self._name_of(f): f for f in functions(root)}
        self._calls: list[str] = []

    def function(self, name: str) -> Function:
        """Read a function.

        Raises:
            Unliftable: It is not there, or uses what the form has no words for.
        """
        node = self._functions.get(name)
        if node is None:
            raise Unliftable(f"no function {name} is found once macros are expanded")
        if node.has_error:
            raise Unliftable("does not parse")
        parameters = tuple(self._parameters(node))
        for p in parameters:
            self.scopes.take(p.name)
            if p.space is None:
                self.scopes.declare(p.name, Scalar(Var(p.name, p.dtype)))
            else:
                self.scopes.declare(p.name, Pointer(p.name, ZERO, p.dtype))
            if p.space == "local":
                self.out.append(Array(p.name, p.dtype, 0, "local"))
        self.changed = frozenset(cloops.changed(self.read, child(node, "body")))
        for p in parameters:
            if p.space is None and p.name in self.changed:
                raise Unliftable(f"changes its parameter {p.name}")
        self.block(child(node, "body").named_children, RETURN)
        return Function(parameters, tuple(self.out), self.aliases)

    def _parameters(self, function: Node) -> Iterator[Declared]:
        listed = child(function_declarator(function), "parameters")
        for node in listed.named_children:
            declarator = node.child_by_field_name("declarator")
            if node.type != "parameter_declaration" or declarator is None:
                continue
            name = self.read.text(innermost(declarator))
            dtype = self.read.dtype(self.read.text(child(node, "type")))
            pointer = declarator.type in {"pointer_declarator", "array_declarator"}
            space = self.dialect.space(self.source, node)
            if space == "private":
                space = "global"
            yield Declared(name, dtype, space if pointer else None)

    def call(self, node: Node) -> None:
        """Read a call for what it does: of a barrier, or of a function that the source defines."""
        name = self.read.text(child(node, "function"))
        if name in self._functions:
            self._enter(name, [a for a in child(node, "arguments").named_children if a.type != "comment"])
            self.block(child(self._functions[name], "body").named_children, RETURN)
            self._leave()
        else:
            super().call(node)

    def inline(self, name: str, arguments: list[Node]) -> Expr | None:
        """Read a call of a function that the source defines as the value it returns."""
        function = self._functions.get(name)
        if function is None:
            return None
        body = [n for n in child(function, "body").named_children if n.type != "comment"]
        if self.read.conditional and any(n.type not in {RETURN, "if_statement"} for n in body):
            raise Unliftable(f"calls {name} where it may not be reached")
        dtype = self.read.dtype(self.read.text(child(function, "type")))
        self._enter(name, arguments)
        try:
            return convert(self._value(name, body), dtype)
        finally:
            self._leave()

    def _enter(self, name: str, arguments: list[Node]) -> None:
        if len(self._calls) >= _DEEPEST_CALL:
            raise Unliftable(f"calls {name} too deeply")
        function = self._functions[name]
        body = child(function, "body")
        parameters = list(self._parameters(function))
        if len(parameters) != len(arguments):
            raise Unliftable(f"calls {name} with other arguments than it takes")
        given = [
            convert(self.read.read(a), p.dtype) if p.space is None else self.read.pointer(a)
            for p, a in zip(parameters, arguments, strict=True)
        ]
        self._calls.append(name)
        changed = frozenset(cloops.changed(self.read, body))
        self.changed |= changed
        self.scopes.push("function")
        for p, value in zip(parameters, given, strict=True):
            if value is None:
                raise Unliftable(f"passes an unknown pointer to {name}")
            if isinstance(value, Pointer):
                self.scopes.declare(p.name, replace(value))
            elif p.name in changed or (
                not isinstance(value, Const | Var) and _uses(self.read, body, p.name) > 1
            ):
                self.let(p.name, p.dtype, value)
            else:
                self.scopes.declare(p.name, Scalar(value))

    def _leave(self) -> None:
        self._calls.pop()
        self.scopes.pop(spliced=True)

    def _value(self, name: str, nodes: list[Node]) -> Expr:
        for k, node in enumerate(nodes):
            if node.type == RETURN and node.named_child_count == 1:
                return self.read.read(node.named_children[0])
            if node.type == "if_statement" and exits(child(node, "consequence")):
                condition = truth(self.read.read(child(node, "condition")))
                self.read.conditional += 1
                yes = self._value(name, inside(child(node, "consequence")))
                rest = [*inside(node.child_by_field_name("alternative")), *nodes[k + 1 :]]
                no = self._value(name, rest)
                self.read.conditional -= 1
                return Select(condition, yes, convert(no, yes.dtype), yes.dtype)
            if self.read.conditional:
                raise Unliftable(f"calls {name}, which returns early")
            self.statement(node)
        raise Unliftable(f"calls {name}, which may return nothing")

    def _name_of(self, function: Node) -> str:
        declarator = function_declarator(function)
        inner = innermost(declarator)
        return self.source[inner.start_byte : inner.end_byte]


def _uses(read: Expressions, node: Node, name: str) -> int:
    own = int(node.type == "identifier" and read.text(node) == name)
    return own + sum(_uses(read, c, name) for c in node.named_children)
