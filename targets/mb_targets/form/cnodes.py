"""Syntax nodes that C-like grammars have in common."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from mb_targets.form.dialect import Unliftable

RETURN, CONTINUE = "return_statement", "continue_statement"


def child(node: Node, field: str) -> Node:
    """Give a field that the grammar always fills."""
    found = node.child_by_field_name(field)
    if found is None:
        raise Unliftable("does not parse")
    return found


def functions(root: Node) -> Iterator[Node]:
    """Give the functions that a source defines."""
    for node in root.named_children:
        if node.type == "function_definition":
            yield node
        elif node.type in {"linkage_specification", "declaration_list", "template_declaration"}:
            yield from functions(node)


def function_declarator(function: Node) -> Node:
    """Give what names a function and lists its parameters."""
    node = child(function, "declarator")
    while node.type != "function_declarator":
        node = child(node, "declarator")
    return node


def innermost(declarator: Node) -> Node:
    """Give the name in a declarator."""
    while (inner := declarator.child_by_field_name("declarator")) is not None:
        declarator = inner
    return declarator


def inside(node: Node | None) -> list[Node]:
    """Give the statements of a branch, braces and ``else`` taken off."""
    if node is None:
        return []
    if node.type == "else_clause":
        return inside(node.named_children[-1])
    found = node.named_children if node.type == "compound_statement" else [node]
    return [n for n in found if n.type != "comment"]


def exits(branch: Node) -> bool:
    """Tell whether a branch ends by leaving the block around it."""
    found = inside(branch)
    return bool(found) and found[-1].type in {RETURN, CONTINUE}
