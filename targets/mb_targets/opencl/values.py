"""Follow a kernel's values as far as they are sums of products of sizes, ids and loop variables.

What cannot be followed is unknown, never guessed.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tree_sitter import Node

from mb_targets.model import Kernel
from mb_targets.opencl import elements
from mb_targets.opencl import polynomial as poly
from mb_targets.opencl.facts import numbers
from mb_targets.opencl.pointers import global_id, moved, parameters, typed
from mb_targets.opencl.polynomial import Polynomial
from mb_targets.opencl.reaches import Access, Bound, Bounds, Pointer, Value, Walk, guarded, reach
from mb_targets.opencl.signature import NOT_TYPE, plain

_SIZES = {"get_global_size": "G", "get_local_size": "L", "get_num_groups": "W"}
_IDS = {"get_global_id": "%g", "get_local_id": "%l", "get_group_id": "%w"}
_LAUNCH = re.compile(r"[GLW][0-2]")
_FOLLOWED = frozenset({"min", "max", "clamp", "mad24", "mul24"})
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*")


class Values:
    """What names stand for at one place of a kernel's text, and their bounds; notes the accesses it meets."""

    def __init__(self, kernel: Kernel, source: str, local: tuple[int, ...], options: tuple[str, ...]) -> None:
        self.found = Walk()
        self._kernel, self._options = kernel, options
        self._source, self._local = source, local
        self.names: dict[str, Value] = dict(parameters(kernel, options))
        self._numbers = numbers(kernel.source)
        self.bounds: Bounds = {}
        for d in range(3):
            for letter, size in (("g", "G"), ("l", "L"), ("w", "W")):
                high = poly.add(poly.name(f"{size}{d}"), poly.number(-1))
                self.bounds[f"%{letter}{d}"] = Bound(poly.number(0), high)
        self.sums: list[tuple[Polynomial, Polynomial]] = []
        self.steps: dict[str, int] = {}
        self._fresh = 0

    def value(self, node: Node | None, note: bool = True) -> Value:
        """Work out an expression, and note the accesses in it."""
        if node is None:
            return None
        match node.type:
            case "identifier":
                name = self.text(node)
                if name in self.names:
                    return self.names[name]
                known = self._numbers.get(name)
                return poly.number(int(known)) if known is not None and known == known // 1 else None
            case "number_literal":
                found = _INTEGER.fullmatch(self.text(node))
                return (
                    poly.number(int(found[1], 0 if found[1][:2] in ("0x", "0X") else 10)) if found else None
                )
            case "parenthesized_expression":
                return self.value(node.named_children[0], note) if node.named_children else None
            case "binary_expression":
                return self._binary(node, note)
            case "unary_expression":
                inner = self.value(node.child_by_field_name("argument"), note)
                negative = self.text(node.child_by_field_name("operator")) == "-"
                return (
                    poly.add(poly.number(0), inner, -1)
                    if negative and isinstance(inner, Polynomial)
                    else None
                )
            case "cast_expression":
                return self._cast(node, note)
            case "call_expression":
                return self._call(node, note)
            case "pointer_expression" if self.text(node.child_by_field_name("operator")) == "&":
                return self._place(node, note)
            case "subscript_expression" | "pointer_expression":
                place = self._place(node, note)
                if place and note:
                    self._note(place, writes=False)
                return self._loaded(place)
            case "assignment_expression":
                return self._assignment(node, note)
            case "update_expression":
                return self._update(node, note)
            case "conditional_expression":
                return self._conditional(node, note)
            case _:
                for child in node.named_children:
                    self.value(child, note)
                return None

    def _binary(self, node: Node, note: bool) -> Value:
        sign = self.text(node.child_by_field_name("operator"))
        left_node, right_node = node.child_by_field_name("left"), node.child_by_field_name("right")
        left = self.value(left_node, note)
        names, bounds, known = dict(self.names), dict(self.bounds), len(self.sums)
        if sign == "&&" and left_node:
            self.assume(left_node, holds=True)
        right = self.value(right_node, note)
        self.names, self.bounds = names, bounds
        del self.sums[known:]
        if isinstance(left, Pointer) or isinstance(right, Pointer):
            return moved(left, right, sign)
        if left is None or right is None:
            return None
        return self._arithmetic(sign, left, right)

    def _arithmetic(self, sign: str, left: Polynomial, right: Polynomial) -> Polynomial | None:
        if sign == "+":
            return global_id(poly.add(left, right), self._local)
        if sign == "-":
            return poly.add(left, right, -1)
        if sign == "*":
            return poly.multiply(left, right)
        by = right.constant
        if sign == "<<" and by is not None and 0 <= by < 31:
            return poly.multiply(left, poly.number(1 << by))
        divisor = by if sign == "/" else 1 << by if sign == ">>" and by is not None and 0 <= by < 31 else None
        if divisor:
            return left if divisor == 1 else self._divided(left, divisor)
        if (sign == "%" and by) or (sign == "&" and by is not None and by >= 0):
            return self._limited(poly.number(by - 1 if sign == "%" else by))
        if sign == "%":
            return self._limited(poly.add(right, poly.number(-1)))
        if sign == "/" and left.constant is None:
            return self._limited(reach(left, self.bounds))
        return None

    def _divided(self, value: Polynomial, divisor: int) -> Polynomial | None:
        if value.constant is not None:
            return poly.number(value.constant // divisor)
        if value.name and not value.name.startswith("%"):
            if not _LAUNCH.fullmatch(value.name):
                self.found.divisors.setdefault(value.name, divisor)
            return poly.name(f"{value.name}/{divisor}")
        limit = reach(value, self.bounds)
        if limit is not None and limit.constant is not None:
            return self._limited(poly.number(limit.constant // divisor))
        exact = limit and all(n % divisor == 0 or not p for p, n in limit.terms)
        return self._limited(
            poly.collect((p, n // divisor) for p, n in limit.terms) if exact and limit else limit
        )

    def _limited(self, high: Polynomial | None) -> Polynomial:
        atom = self.atom()
        self.bounds[atom] = Bound(poly.number(0), high)
        return poly.name(atom)

    def _cast(self, node: Node, note: bool) -> Value:
        value = self.value(node.child_by_field_name("value"), note)
        if isinstance(value, Pointer):
            return self.typed(value, self.text(node.child_by_field_name("type")).partition("*")[0])
        return value

    def typed(self, pointer: Pointer, type_name: str) -> Pointer:
        """Let a pointer point to another type, as written with its qualifiers."""
        words = " ".join(w for w in type_name.split() if plain(w) not in NOT_TYPE)
        return typed(pointer, words, elements.element(words, self._kernel.source, self._options))

    def _call(self, node: Node, note: bool) -> Value:
        function = self.text(node.child_by_field_name("function"))
        listed = node.child_by_field_name("arguments")
        passed = listed.named_children if listed else []
        if function in _IDS or function in _SIZES:
            dim = self.text(passed[0]).rstrip("uU") if passed else ""
            if dim not in ("0", "1", "2"):
                return None
            if function == "get_local_size" and int(dim) < len(self._local):
                return poly.number(self._local[int(dim)])
            return poly.name(f"{_IDS.get(function) or _SIZES[function]}{dim}")
        values = [self.value(p, note) for p in passed]
        if function.startswith(("vload", "vstore")) and note:
            self._vector(function, values)
        elif function in ("min", "max", "clamp", "mad24", "mul24") and all(
            isinstance(v, Polynomial) for v in values
        ):
            return self._extreme(function, [v for v in values if isinstance(v, Polynomial)])
        elif note:
            writes = function.startswith(("atomic_", "atom_"))
            for pointer in (v for v in values if isinstance(v, Pointer)):
                self._note(pointer if writes else replace(pointer, offset=None), writes=False)
                self._note(pointer if writes else replace(pointer, offset=None), writes=True)
        return None

    def _extreme(self, function: str, values: list[Polynomial]) -> Polynomial | None:
        if function in ("mad24", "mul24"):
            product = poly.multiply(values[0], values[1])
            return poly.add(product, values[2]) if product and len(values) > 2 else product
        reached = [reach(v, self.bounds) for v in values]
        if function == "max":
            larger = [r for r in reached if r is not None and r.constant is None]
            return self._limited(larger[0]) if len(larger) == 1 and None not in reached else None
        candidates = values[-1:] if function == "clamp" else values
        free = [r for r in (reach(v, self.bounds) for v in candidates) if r is not None]
        scalar = [v for v in candidates if not any(n.startswith("%") for n in v.names)]
        return self._limited((scalar or free)[0]) if scalar or free else None

    def _vector(self, function: str, values: list[Value]) -> None:
        lanes = re.search(r"(\d+)$", function.split("_rt")[0])
        pointer = values[-1] if values else None
        index = values[-2] if len(values) > 1 else None
        if not isinstance(pointer, Pointer):
            return
        whole = replace(pointer, lanes=int(lanes[1]) if lanes else 1)
        place = whole.moved(index if isinstance(index, Polynomial) else None)
        self._note(place, writes=function.startswith("vstore"))

    def _place(self, node: Node, note: bool) -> Pointer | None:
        """Work out where ``p[i]`` or ``*p`` lies; None for what is no parameter's memory."""
        if node.type == "subscript_expression":
            base = self.value(node.child_by_field_name("argument"), note)
            index = self.value(node.child_by_field_name("index"), note)
            return moved(base, index, "+") if isinstance(base, Pointer) else None
        if node.type == "pointer_expression":
            inner = node.child_by_field_name("argument")
            if self.text(node.child_by_field_name("operator")) == "&":
                while inner is not None and inner.type == "parenthesized_expression" and inner.named_children:
                    inner = inner.named_children[0]
                return self._place(inner, note) if inner is not None else None
            value = self.value(inner, note)
            return value if isinstance(value, Pointer) else None
        if node.type == "field_expression":
            inner = node.child_by_field_name("argument")
            return self._place(inner, note) if inner is not None else None
        return None

    def _assignment(self, node: Node, note: bool) -> Value:
        left, sign = node.child_by_field_name("left"), self.text(node.child_by_field_name("operator"))
        value = self.value(node.child_by_field_name("right"), note)
        if left is None:
            return None
        place = self._place(left, note)
        if place and note:
            if sign != "=":
                self._note(place, writes=False)
            self._note(place, writes=True)
        if left.type == "identifier":
            before = self.names.get(self.text(left))
            if sign in ("+=", "-=", "*="):
                value = self._compound(before, value, sign[0])
            elif sign != "=":
                value = None
            if isinstance(value, Pointer) and isinstance(before, Pointer):
                value = replace(value, dtype=before.dtype, lanes=before.lanes)
            if self.text(left) in self.names:
                self.names[self.text(left)] = value
        return value

    def _compound(self, before: Value, value: Value, sign: str) -> Value:
        if isinstance(before, Pointer):
            return moved(before, value, sign)
        if isinstance(before, Polynomial) and isinstance(value, Polynomial):
            return self._arithmetic(sign, before, value)
        return None

    def _update(self, node: Node, note: bool) -> Value:
        target = node.child_by_field_name("argument")
        place = self._place(target, note) if target is not None else None
        if place and note:
            self._note(place, writes=False)
            self._note(place, writes=True)
        if target is not None and target.type == "identifier" and self.text(target) in self.names:
            step = poly.number(1 if "+" in self.text(node) else -1)
            before = self.names[self.text(target)]
            self.names[self.text(target)] = self._compound(before, step, "+")
            return before
        return None

    def _conditional(self, node: Node, note: bool) -> Value:
        condition = node.child_by_field_name("condition")
        names, bounds, known = dict(self.names), dict(self.bounds), len(self.sums)
        values: list[Value] = []
        self.value(condition, note)
        for part, holds in (("consequence", True), ("alternative", False)):
            if condition is not None:
                self.assume(condition, holds=holds)
            values.append(self.value(node.child_by_field_name(part), note))
            self.names, self.bounds = dict(names), dict(bounds)
            del self.sums[known:]
        return values[0] if values[0] == values[1] else None

    def _note(self, pointer: Pointer, writes: bool) -> None:
        far = index = None
        if pointer.offset is not None:
            limited = guarded(pointer.offset, self.sums)
            far = reach(poly.add(limited, poly.number(pointer.step - 1)), self.bounds)
            self._stepped(limited)
            index = poly.divide(pointer.offset, pointer.step)
            index = index or poly.divide(pointer.offset, pointer.step // pointer.lanes)
        self.found.accesses.append(Access(pointer.buffer, index, far, writes, pointer.dtype))

    def _stepped(self, index: Polynomial) -> None:
        """A loop that takes several elements a step and guards none needs a multiple of its step."""
        for atom in index.names:
            high = self.bounds[atom].high if atom in self.steps else None
            limit = poly.add(high, poly.number(self.steps[atom])) if high is not None else None
            if limit is not None and limit.name:
                self.found.divisors.setdefault(limit.name, self.steps[atom])

    def _loaded(self, place: Pointer | None) -> Polynomial | None:
        """A value that was loaded is a name of its own, bounded by what the buffer may hold."""
        if place is None or place.lanes != 1 or not place.dtype or place.dtype[0] not in "iu":
            return None
        return self._limited(poly.add(poly.name(f"@{place.buffer}"), poly.number(-1)))

    def assume(self, node: Node, *, holds: bool) -> None:
        """Take a condition, or its opposite, to hold from here on."""
        if node.type == "parenthesized_expression" and node.named_children:
            self.assume(node.named_children[0], holds=holds)
        if node.type != "binary_expression":
            return
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        sign = self.text(node.child_by_field_name("operator"))
        if left is None or right is None:
            return
        if sign == ("&&" if holds else "||"):
            self.assume(left, holds=holds)
            self.assume(right, holds=holds)
            return
        if not holds:
            sign = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}.get(sign, "")
        if sign in (">", ">="):
            left, right, sign = right, left, {">": "<", ">=": "<="}[sign]
        if sign in ("<", "<=", "!=", "=="):
            self._below_bound(left, right, sign)

    def _below_bound(self, left: Node, right: Node, sign: str) -> None:
        value, limit = self.value(left, note=False), self.value(right, note=False)
        if not isinstance(value, Polynomial) or not isinstance(limit, Polynomial):
            if isinstance(limit, Polynomial) and left.type == "identifier":
                value = self.rebind(self.text(left))
            else:
                return
        high = limit if sign in ("<=", "==") else poly.add(limit, poly.number(-1))
        # `x + 1 < n` bounds x as well as x + 1: move what is constant to the other side.
        shift = dict(value.terms).get((), 0)
        bare = poly.add(value, poly.number(-shift))
        high = poly.add(high, poly.number(-shift))
        atom = bare.name
        if not atom.startswith("%"):
            if not any(n.startswith("%") for n in value.names) or sign == "!=":
                return
            if left.type != "identifier":
                self.sums.append((bare, high))
                return
            high = poly.add(high, poly.number(shift))
            atom = self.rebind(self.text(left)).name
        known = self.bounds.get(atom, Bound(poly.number(0), None))
        if sign == "!=" and known.high is not None:
            return
        step = self.steps.get(atom, 1)
        self.bounds[atom] = replace(known, high=poly.add(high, poly.number(1 - step)))
        if not any(n.startswith("%") for n in high.names) and atom[1] in "gw" and not shift:
            self.found.guards.setdefault(atom, poly.add(high, poly.number(1)))

    def rebind(self, name: str) -> Polynomial:
        """Let a variable stand for itself, so that it can have bounds of its own."""
        atom = self.atom()
        self.bounds[atom] = Bound(poly.number(0), None)
        self.names[name] = poly.name(atom)
        return poly.name(atom)

    def atom(self) -> str:
        """Make a name that nothing else has."""
        self._fresh += 1
        return f"%v{self._fresh}"

    def text(self, node: Node | None) -> str:
        """Give the text of a node."""
        return self._source[node.start_byte : node.end_byte] if node is not None else ""
