"""Statements of C: a function's syntax tree to statements of the form.

Ids stay names that begin with ``@``; local arrays and barriers stay in; loops that do not count are unrolled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from tree_sitter import Node

from mb_targets.form import cloops
from mb_targets.form.affine import constant
from mb_targets.form.cexpr import Expressions, arithmetic, child, convert, truth
from mb_targets.form.dialect import GLOBAL, GROUP, LOCAL, Dialect, Space, Unliftable
from mb_targets.form.dtypes import is_integer
from mb_targets.form.nest import (
    Array,
    Assign,
    Barrier,
    Cast,
    Const,
    Expr,
    If,
    Let,
    Load,
    Op,
    Operator,
    Select,
    Stmt,
    Store,
    Var,
)
from mb_targets.form.scope import ZERO, Forgotten, Kind, Pointer, Scalar, Scopes
from mb_targets.model import Dtype

RETURN, CONTINUE = "return_statement", "continue_statement"
_DEEPEST_CALL = 8
_IDS = (GLOBAL, LOCAL, GROUP)


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


class Statements:
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
        self._dialect = dialect
        self._source = source
        self._functions = {n: f for f in _functions(root) if (n := self._name_of(f))}
        self.scopes = Scopes()
        self.out: list[Stmt] = []
        self.read = Expressions(source, dialect, numbers, self.scopes, local_size, self._inline, single)
        self._aliases: dict[str, Var] = {}
        self._changed: frozenset[str] = frozenset()
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
        self._changed = frozenset(cloops.changed(self.read, child(node, "body")))
        for p in parameters:
            if p.space is None and p.name in self._changed:
                raise Unliftable(f"changes its parameter {p.name}")
        self.block(child(node, "body").named_children, RETURN)
        return Function(parameters, tuple(self.out), self._aliases)

    def block(self, nodes: list[Node], leave: str | None) -> None:
        """Read statements in order.

        Args:
            nodes: The statements.
            leave: Type of the statement that may end this block early, None where none may.
        """
        for k, node in enumerate(nodes):
            if node.type in {RETURN, CONTINUE}:
                self._check_exit(node, leave)
                return
            rest = nodes[k + 1 :]
            if node.type == "if_statement":
                self._if(node, rest, leave)
                if _exits(child(node, "consequence")):
                    return
            else:
                self.statement(node)

    def nested(
        self, nodes: list[Node], kind: Kind, leave: str | None, spliced: bool = False
    ) -> tuple[Stmt, ...]:
        """Read the statements of an inner block and give them; ``spliced`` ones join the block around."""
        outer, self.out = self.out, []
        self.scopes.push(kind)
        try:
            self.block(nodes, leave)
            return tuple(self.out)
        finally:
            self.scopes.pop(spliced)
            self.out = outer

    def statement(self, node: Node) -> None:
        """Read one statement.

        Raises:
            Unliftable: The form has no words for it.
        """
        match node.type:
            case "comment" | "preproc_call":
                pass
            case "declaration":
                for declarator in node.children_by_field_name("declarator"):
                    self._declare(node, declarator)
            case "expression_statement":
                for inner in node.named_children:
                    self.effect(inner)
            case "compound_statement":
                self.out += self.nested(node.named_children, "plain", None, spliced=True)
            case "if_statement":
                self._if(node, [], None)
            case "for_statement":
                cloops.read_for(self, node)
            case "while_statement":
                cloops.read_while(self, node)
            case "break_statement":
                raise Unliftable("leaves a loop early with break")
            case "switch_statement" | "goto_statement" | "do_statement":
                raise Unliftable(f"uses {node.type.removesuffix('_statement')}")
            case _ if node.type in {RETURN, CONTINUE}:
                self._check_exit(node, None)
            case _:
                raise Unliftable(f"does not know {' '.join(self.read.text(node).split())[:40]}")

    def effect(self, node: Node) -> None:
        """Read an expression that stands for what it does."""
        match node.type:
            case "comment":
                pass
            case "comma_expression":
                self.effect(child(node, "left"))
                self.effect(child(node, "right"))
            case "parenthesized_expression":
                self.effect(node.named_children[0])
            case "assignment_expression":
                self._assign(node)
            case "update_expression":
                op = cast(Operator, self.read.text(child(node, "operator"))[0])
                self._change(child(node, "argument"), op, Const(1, "i32"))
            case "call_expression":
                self._call(node)
            case _:
                self.read.read(node)

    def assign(self, name: str, value: Expr) -> None:
        """Give a variable a value."""
        meaning = self.scopes.find(name)
        if isinstance(meaning, Scalar) and isinstance(meaning.value, Load):
            target = meaning.value
            self.out.append(Store(target.buffer, target.index, convert(value, target.dtype)))
            return
        variable = self.scopes.variable(name)
        if variable is None:
            raise Unliftable(f"assigns to {name}, which is no variable here")
        if isinstance(meaning, Forgotten):
            self.scopes.set(name, Scalar(variable))
        self.out.append(Assign(variable.name, convert(value, variable.dtype)))

    def let(self, name: str, dtype: Dtype, value: Expr | None) -> Var:
        """Declare a variable in the innermost block."""
        variable = Var(self.scopes.fresh(name), dtype)
        self.scopes.declare(name, Scalar(variable))
        self.out.append(Let(variable.name, dtype, value))
        if value is not None and is_integer(dtype) and name not in self._changed:
            self.read.remember(variable.name, value)
        return variable

    def _check_exit(self, node: Node, leave: str | None) -> None:
        if node.type == RETURN and node.named_child_count:
            raise Unliftable("returns a value")
        if node.type != leave:
            raise Unliftable(f"has a {node.type.removesuffix('_statement')} in the middle of a block")

    def _if(self, node: Node, rest: list[Node], leave: str | None) -> None:
        condition = truth(self.read.read(child(node, "condition")))
        then, otherwise = (
            _inside(child(node, "consequence")),
            _inside(node.child_by_field_name("alternative")),
        )
        here = leave if not any(n.type != "comment" for n in rest) else None
        if _exits(child(node, "consequence")):
            self._check_exit(then[-1], leave)
            yes = self.nested(then[:-1], "branch", None)
            # what follows runs on this path alone, so that a pointer moved there has moved for good
            no = self.nested([*otherwise, *rest], "branch" if yes else "plain", leave)
        else:
            yes, no = self.nested(then, "branch", here), self.nested(otherwise, "branch", here)
        if isinstance(condition, Const):
            self.out += yes if condition.value else no
        elif yes:
            self.out.append(If(condition, yes, no))
        elif no:
            self.out.append(If(negated(condition), no))

    def _assign(self, node: Node) -> None:
        left, right = child(node, "left"), child(node, "right")
        op = self.read.text(child(node, "operator")).removesuffix("=")
        if right.type == "assignment_expression":
            self._assign(right)
            right = child(right, "left")
        if left.type == "identifier" and isinstance(self.scopes.find(self.read.text(left)), Pointer):
            self._move(left, op, right)
        elif op:
            self._change(left, cast(Operator, op), self.read.read(right))
        elif left.type == "identifier":
            self.assign(self.read.text(left), self.read.read(right))
        else:
            self._store(left, None, self.read.read(right))

    def _move(self, left: Node, op: str, right: Node) -> None:
        name = self.read.text(left)
        if op:
            base = self.scopes.find(name)
            assert isinstance(base, Pointer)
            self.scopes.change(name, self.read.moved(base, cast(Operator, op), self.read.read(right)))
            return
        target = self.read.pointer(right)
        if target is None:
            raise Unliftable(f"gives pointer {name} an unknown value")
        self.scopes.change(name, target)

    def _change(self, left: Node, op: Operator, by: Expr) -> None:
        if left.type != "identifier":
            self._store(left, op, by)
            return
        name = self.read.text(left)
        meaning = self.scopes.find(name)
        if isinstance(meaning, Pointer):
            self.scopes.change(name, self.read.moved(meaning, op, by))
        else:
            self.assign(name, arithmetic(op, self.read.read(left), by))

    def _store(self, left: Node, op: Operator | None, value: Expr) -> None:
        place = self.read.place(left)
        if place is None:
            raise Unliftable(f"assigns to {' '.join(self.read.text(left).split())[:40]}")
        new = value if op is None else arithmetic(op, place, value)
        self.out.append(Store(place.buffer, place.index, convert(new, place.dtype)))

    def _declare(self, node: Node, declarator: Node) -> None:
        dtype_name = self.read.text(child(node, "type"))
        space = self._dialect.space(self._source, node)
        value = None
        if declarator.type == "init_declarator":
            value, declarator = child(declarator, "value"), child(declarator, "declarator")
        if declarator.type == "array_declarator":
            self._declare_array(declarator, self.read.dtype(dtype_name), space)
        elif declarator.type == "pointer_declarator":
            self._declare_pointer(declarator, value)
        elif space == "local":
            name = self.read.text(declarator)
            array = Array(self.scopes.fresh(name), self.read.dtype(dtype_name), 1, "local")
            self.scopes.declare(name, Scalar(Load(array.name, ZERO, array.dtype)))
            self.out.append(array)
        else:
            self._declare_scalar(self.read.text(declarator), self.read.dtype(dtype_name), value)

    def _declare_scalar(self, name: str, dtype: Dtype, node: Node | None) -> None:
        if node is None:
            self.let(name, dtype, None)
            return
        if node.type == "assignment_expression":
            self._assign(node)
            node = child(node, "left")
        value = convert(self.read.read(node), dtype)
        bare = value.value if isinstance(value, Cast) else value
        fixed = name not in self._changed
        if fixed and isinstance(bare, Var) and bare.name.startswith(_IDS) and is_integer(dtype):
            self._aliases.setdefault(bare.name, Var(self.scopes.fresh(name), dtype))
            self.scopes.declare(name, Scalar(Var(bare.name, dtype)))
        elif fixed and isinstance(value, Const) and is_integer(dtype):
            self.scopes.declare(name, Scalar(value))
        else:
            self.let(name, dtype, value)

    def _declare_array(self, declarator: Node, dtype: Dtype, space: Space) -> None:
        lengths: list[int] = []
        while declarator.type == "array_declarator":
            size = declarator.child_by_field_name("size")
            length = constant(self.read.known(self.read.read(size))) if size is not None else None
            if length is None:
                raise Unliftable("declares an array of unknown length")
            lengths.insert(0, length)
            declarator = child(declarator, "declarator")
        name = self.read.text(declarator)
        if space != "local":
            raise Unliftable(f"keeps a private array {name}")
        total = 1
        for length in lengths:
            total *= length
        array = Array(self.scopes.fresh(name), dtype, total, "local")
        self.scopes.declare(name, Pointer(array.name, ZERO, dtype, tuple(lengths[1:])))
        self.out.append(array)

    def _declare_pointer(self, declarator: Node, value: Node | None) -> None:
        name = self.read.text(_innermost(declarator))
        target = self.read.pointer(value) if value is not None else None
        if target is None:
            raise Unliftable(f"pointer {name} starts at an unknown place")
        self.scopes.declare(name, target)

    def _parameters(self, function: Node) -> Iterator[Declared]:
        listed = child(_function_declarator(function), "parameters")
        for node in listed.named_children:
            declarator = node.child_by_field_name("declarator")
            if node.type != "parameter_declaration" or declarator is None:
                continue
            name = self.read.text(_innermost(declarator))
            dtype = self.read.dtype(self.read.text(child(node, "type")))
            pointer = declarator.type in {"pointer_declarator", "array_declarator"}
            space = self._dialect.space(self._source, node)
            if space == "private":
                space = "global"
            yield Declared(name, dtype, space if pointer else None)

    def _call(self, node: Node) -> None:
        name = self.read.text(child(node, "function"))
        if name in self._dialect.barriers:
            self.out.append(Barrier())
        elif name in self._functions:
            self._enter(name, [a for a in child(node, "arguments").named_children if a.type != "comment"])
            self.block(child(self._functions[name], "body").named_children, RETURN)
            self._leave()
        else:
            raise Unliftable(f"calls {name}")

    def _inline(self, name: str, arguments: list[Node]) -> Expr | None:
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
        self._changed |= changed
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
            if node.type == "if_statement" and _exits(child(node, "consequence")):
                condition = truth(self.read.read(child(node, "condition")))
                self.read.conditional += 1
                yes = self._value(name, _inside(child(node, "consequence")))
                rest = [*_inside(node.child_by_field_name("alternative")), *nodes[k + 1 :]]
                no = self._value(name, rest)
                self.read.conditional -= 1
                return Select(condition, yes, convert(no, yes.dtype), yes.dtype)
            if self.read.conditional:
                raise Unliftable(f"calls {name}, which returns early")
            self.statement(node)
        raise Unliftable(f"calls {name}, which may return nothing")

    def _name_of(self, function: Node) -> str:
        declarator = _function_declarator(function)
        inner = _innermost(declarator)
        return self._source[inner.start_byte : inner.end_byte]


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


def _functions(root: Node) -> Iterator[Node]:
    for node in root.named_children:
        if node.type == "function_definition":
            yield node
        elif node.type in {"linkage_specification", "declaration_list", "template_declaration"}:
            yield from _functions(node)


def _function_declarator(function: Node) -> Node:
    node = child(function, "declarator")
    while node.type != "function_declarator":
        node = child(node, "declarator")
    return node


def _innermost(declarator: Node) -> Node:
    while (inner := declarator.child_by_field_name("declarator")) is not None:
        declarator = inner
    return declarator


def _inside(node: Node | None) -> list[Node]:
    """Give the statements of a branch, braces and ``else`` taken off."""
    if node is None:
        return []
    if node.type == "else_clause":
        return _inside(node.named_children[-1])
    found = node.named_children if node.type == "compound_statement" else [node]
    return [n for n in found if n.type != "comment"]


def _exits(branch: Node) -> bool:
    inside = _inside(branch)
    return bool(inside) and inside[-1].type in {RETURN, CONTINUE}


def _uses(read: Expressions, node: Node, name: str) -> int:
    own = int(node.type == "identifier" and read.text(node) == name)
    return own + sum(_uses(read, c, name) for c in node.named_children)
