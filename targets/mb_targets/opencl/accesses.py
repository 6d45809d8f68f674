"""Walk a kernel's tree and note, for each access of a pointer parameter, how far its index can reach."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tree_sitter import Node

from mb_targets.model import Kernel
from mb_targets.opencl import polynomial as poly
from mb_targets.opencl import structure
from mb_targets.opencl.expand import expanded
from mb_targets.opencl.polynomial import Polynomial
from mb_targets.opencl.reaches import Bound, Pointer, Value, Walk
from mb_targets.opencl.values import Values

_LEAVES = frozenset({"return_statement", "continue_statement", "break_statement"})
_STEP = re.compile(r"\+=\s*(\d+)[uUlL]*\s*$")
_PLAIN = frozenset({"else_clause", "preproc_if", "preproc_ifdef", "preproc_else"})


def walk(kernel: Kernel, local: tuple[int, ...] = (), options: tuple[str, ...] = ()) -> Walk:
    """Walk a kernel's body; one that does not parse is walked as far as it goes.

    Args:
        kernel: The kernel.
        local: The local size, where it is known.
        options: Compiler options, of which those that define macros count.
    """
    source = expanded(kernel, options)
    tree = structure.parse(source)
    walker = _Walker(kernel, source, local, options)
    try:
        body = next((n for n in _below(tree.root_node) if n.type == "compound_statement"), None)
        if body:
            walker.block(body)
    except RecursionError:
        return Walk()
    return walker.found


class _Walker(Values):
    """Carries names and bounds along the statements."""

    def block(self, node: Node) -> None:
        """Walk the statements of a block; names declared in it end with it."""
        names = dict(self.names)
        for child in node.named_children:
            self.statement(child)
        self.names = {n: self.names[n] for n in names}

    def statement(self, node: Node) -> None:
        """Walk one statement."""
        match node.type:
            case "compound_statement":
                self.block(node)
            case "declaration":
                self._declaration(node)
            case "if_statement":
                self._if(node)
            case "for_statement":
                self._for(node)
            case "while_statement" | "do_statement":
                self._forget(node)
                for child in node.named_children:
                    self.statement(child)
            case _ if node.type.endswith("_statement") or node.type in (
                "else_clause",
                "preproc_if",
                "preproc_ifdef",
            ):
                for child in node.named_children:
                    self.statement(child)
            case _:
                self.value(node)

    def _declaration(self, node: Node) -> None:
        for child in node.children_by_field_name("declarator"):
            initial = child.child_by_field_name("value") if child.type == "init_declarator" else None
            declared = child.child_by_field_name("declarator") if initial else child
            value = self.value(initial) if initial else None
            name = next((n for n in _below(child) if n.type == "identifier"), None)
            if name is None or declared is None:
                continue
            if isinstance(value, Pointer):
                value = self.typed(value, self.text(node.child_by_field_name("type")))
            self.names[self.text(name)] = (
                value if declared.type in ("identifier", "pointer_declarator") else None
            )

    def _if(self, node: Node) -> None:
        condition, then = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        otherwise = node.child_by_field_name("alternative")
        if condition is None or then is None:
            return
        self.value(condition)
        names, bounds, known = dict(self.names), dict(self.bounds), len(self.sums)
        self.assume(condition, holds=True)
        self.statement(then)
        changed = self._assigned(node)
        self.names, self.bounds = dict(names), dict(bounds)
        del self.sums[known:]
        if otherwise:
            self.assume(condition, holds=False)
            self.statement(otherwise)
            self.names, self.bounds = dict(names), dict(bounds)
            del self.sums[known:]
        for name in changed:
            self.names[name] = self._forgotten(name)
        if _leaves(then):
            self.assume(condition, holds=False)

    def _for(self, node: Node) -> None:
        names, bounds, known = dict(self.names), dict(self.bounds), len(self.sums)
        initial, condition = node.child_by_field_name("initializer"), node.child_by_field_name("condition")
        if initial:
            self.statement(initial)
        counter = self._counter(node)
        start = self.names.get(counter) if counter else None
        self._forget(node)
        if counter:
            self._loop(node, counter, start if isinstance(start, Polynomial) else None)
        if condition:
            self.value(condition)
            self.assume(condition, holds=True)
        atom = self.names.get(counter)
        limit = (
            self.bounds[atom.name].high if isinstance(atom, Polynomial) and atom.name in self.bounds else None
        )
        if limit is not None and not any(n.startswith("%") for n in limit.names):
            self.found.loops.append(poly.add(limit, poly.number(1)))
        for part in (node.child_by_field_name("body"), node.child_by_field_name("update")):
            if part:
                self.statement(part)
        changed = self._assigned(node)
        self.bounds = bounds
        del self.sums[known:]
        self.names = names
        self.names |= {n: self._forgotten(n) for n in changed if n in names}

    def _counter(self, node: Node) -> str:
        """Name the variable that a loop's last part changes."""
        update = node.child_by_field_name("update")
        found = self._assigned(update) if update else set()
        return next(iter(found)) if len(found) == 1 else ""

    def _loop(self, node: Node, counter: str, start: Polynomial | None) -> None:
        """Bind a loop's variable to a name with bounds: upwards from its start, or downwards to zero."""
        text = self.text(node.child_by_field_name("update"))
        down = "--" in text or "-=" in text or ">>" in text or "/=" in text
        atom = self.atom()
        step = _STEP.search(text)
        if step and not down and start is not None and start.constant is not None:
            self.steps[atom] = int(step[1])
        self.bounds[atom] = Bound(poly.number(0), start) if down else Bound(start or poly.number(0), None)
        self.names[counter] = poly.name(atom)

    def _forget(self, node: Node) -> None:
        for name in self._assigned(node):
            if name in self.names:
                self.names[name] = self._forgotten(name)

    def _forgotten(self, name: str) -> Value:
        """A pointer that moves still points into the same buffer; nobody knows where."""
        known = self.names.get(name)
        return replace(known, offset=None) if isinstance(known, Pointer) else None

    def _assigned(self, node: Node) -> set[str]:
        """Name the variables that are assigned in a statement, other than by their declaration."""
        found: set[str] = set()
        for n in _below(node):
            target = n.child_by_field_name("left") if n.type == "assignment_expression" else None
            target = n.child_by_field_name("argument") if n.type == "update_expression" else target
            if target and target.type == "identifier":
                found.add(self.text(target))
        return found


def _leaves(node: Node) -> bool:
    """Tell whether a statement always leaves the block around it."""
    if node.type in _LEAVES:
        return True
    return node.type == "compound_statement" and any(c.type in _LEAVES for c in node.named_children)


def _below(node: Node) -> Iterator[Node]:
    yield node
    for child in node.named_children:
        yield from _below(child)
