"""Statements of C: a function's syntax tree to statements of the form.

Ids stay names that begin with ``@``; local arrays and barriers stay in; loops that do not count are unrolled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from tree_sitter import Node

from mb_targets.form import cloops
from mb_targets.form.affine import constant
from mb_targets.form.cexpr import Expressions
from mb_targets.form.cnodes import CONTINUE, RETURN, child, exits, innermost, inside
from mb_targets.form.conversions import arithmetic, convert, negated, truth
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
    Operator,
    Stmt,
    Store,
    Var,
)
from mb_targets.form.scope import ZERO, Forgotten, Kind, Pointer, Scalar, Scopes
from mb_targets.model import Dtype

_IDS = (GLOBAL, LOCAL, GROUP)


class Statements:
    """Reads statements.

    Args:
        source: The text that the tree's offsets refer to.
        dialect: The language.
        numbers: Text of each macro that is one number.
        local_size: Work-group size by dimension, None where not known.
        single: Whether unsuffixed floating literals are ``float``.
    """

    def __init__(
        self,
        source: str,
        dialect: Dialect,
        numbers: Mapping[str, str],
        local_size: tuple[int | None, ...],
        single: bool = False,
    ) -> None:
        self.dialect = dialect
        self.source = source
        self.scopes = Scopes()
        self.out: list[Stmt] = []
        self.read = Expressions(source, dialect, numbers, self.scopes, local_size, self.inline, single)
        self.aliases: dict[str, Var] = {}
        self.changed: frozenset[str] = frozenset()

    def inline(self, name: str, arguments: list[Node]) -> Expr | None:
        """Read a call as a value; None for a function that the source does not define."""
        return None

    def call(self, node: Node) -> None:
        """Read a call for what it does."""
        name = self.read.text(child(node, "function"))
        if name not in self.dialect.barriers:
            raise Unliftable(f"calls {name}")
        self.out.append(Barrier())

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
                if exits(child(node, "consequence")):
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
                self.call(node)
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
        if value is not None and is_integer(dtype) and name not in self.changed:
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
            inside(child(node, "consequence")),
            inside(node.child_by_field_name("alternative")),
        )
        here = leave if not any(n.type != "comment" for n in rest) else None
        if exits(child(node, "consequence")):
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
        space = self.dialect.space(self.source, node)
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
        fixed = name not in self.changed
        if fixed and isinstance(bare, Var) and bare.name.startswith(_IDS) and is_integer(dtype):
            self.aliases.setdefault(bare.name, Var(self.scopes.fresh(name), dtype))
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
        name = self.read.text(innermost(declarator))
        target = self.read.pointer(value) if value is not None else None
        if target is None:
            raise Unliftable(f"pointer {name} starts at an unknown place")
        self.scopes.declare(name, target)
