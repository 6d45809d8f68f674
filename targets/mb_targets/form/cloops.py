"""Loops of C: counting ones become loops of the form, others are unrolled where their bounds are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from tree_sitter import Node

from mb_targets.form.affine import constant, depends, equal, simplify
from mb_targets.form.cexpr import Expressions
from mb_targets.form.cnodes import CONTINUE, child
from mb_targets.form.conversions import arithmetic, convert, truth
from mb_targets.form.dialect import Unliftable
from mb_targets.form.dtypes import common, is_integer
from mb_targets.form.nest import Accumulate, Assign, Const, Expr, Let, Loop, Op, Operator, Stmt, Store, Var
from mb_targets.form.scope import Forgotten, Pointer, Scalar
from mb_targets.form.traverse import expressions, statements
from mb_targets.model import Dtype

if TYPE_CHECKING:
    from mb_targets.form.cfront import Statements

_MOST_UNROLLED = 64
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


@dataclass(frozen=True, slots=True)
class Step:
    """How a variable changes from one iteration to the next: ``name = name op by``."""

    name: str
    op: Operator
    by: Expr


def changed(read: Expressions, node: Node) -> Iterator[str]:
    """Name what a piece of code assigns to."""
    target = None
    if node.type == "assignment_expression":
        target = child(node, "left")
    elif node.type == "update_expression":
        target = child(node, "argument")
    if target is not None and target.type == "identifier":
        yield read.text(target)
    for c in node.named_children:
        yield from changed(read, c)


def read_for(reader: Statements, node: Node) -> None:
    """Read a ``for`` statement."""
    reader.scopes.push("plain")
    outer, reader.out = reader.out, []
    if (start := node.child_by_field_name("initializer")) is not None:
        if start.type == "declaration":
            reader.statement(start)
        else:
            reader.effect(start)
    begun, reader.out = reader.out, outer
    updates = list(_parts(node.child_by_field_name("update")))
    condition = node.child_by_field_name("condition")
    if condition is None or not updates:
        raise Unliftable("has a loop without a condition or a step")
    _loop(reader, condition, updates, _body(child(node, "body")), begun)
    reader.scopes.pop()


def read_while(reader: Statements, node: Node) -> None:
    """Read a ``while`` statement whose last statement changes what its condition tests."""
    body = _body(child(node, "body"))
    last = body[-1].named_children if body and body[-1].type == "expression_statement" else []
    if len(last) != 1 or last[0].type not in {"assignment_expression", "update_expression"}:
        raise Unliftable("has a while loop that does not count")
    _loop(reader, child(node, "condition"), last, body[:-1], [])


def _parts(node: Node | None) -> Iterator[Node]:
    if node is None:
        return
    if node.type == "comma_expression":
        yield from _parts(child(node, "left"))
        yield from _parts(child(node, "right"))
    else:
        yield node


def _body(node: Node) -> list[Node]:
    found = node.named_children if node.type == "compound_statement" else [node]
    return [n for n in found if n.type != "comment"]


def _loop(
    reader: Statements, condition: Node, updates: list[Node], body: list[Node], begun: list[Stmt]
) -> None:
    while condition.type in {"parenthesized_expression", "condition_clause"}:
        condition = condition.named_children[0]
    steps = {s.name: s for s in (_step(reader, u) for u in updates)}
    name, op, bound = _condition(reader, condition, steps)
    variable = reader.scopes.variable(name)
    if variable is None or not is_integer(variable.dtype):
        raise Unliftable(f"has a loop over {name}, which is no whole number")
    for s in begun:
        if not (isinstance(s, Let | Assign) and s.name == variable.name):
            reader.out.append(s)
    start, own = _start(reader, variable, begun)
    step = steps.pop(name)
    if step.op in {"+", "-"}:
        count = _Count(name, variable, start, op, reader.read.read(bound), step)
        _counting(reader, count, list(steps.values()), body, own)
    elif steps:
        raise Unliftable(f"has a loop over {name} that changes {', '.join(steps)} too")
    else:
        _unrolled(reader, name, variable.dtype, start, condition, step, body)
    meaning = reader.scopes.find(name)
    if meaning is not None:
        reader.scopes.set(name, Forgotten(f"reads loop variable {name} after its loop", variable))


@dataclass(frozen=True, slots=True)
class _Count:
    """The head of a counting loop."""

    name: str
    variable: Var
    start: Expr
    op: str
    bound: Expr
    step: Step


def _step(reader: Statements, node: Node) -> Step:
    read = reader.read
    if node.type == "update_expression":
        op = cast(Operator, read.text(child(node, "operator"))[0])
        return Step(read.text(child(node, "argument")), op, Const(1, "i32"))
    if node.type != "assignment_expression" or child(node, "left").type != "identifier":
        raise Unliftable(f"steps a loop by {read.text(node)}")
    name, sign = read.text(child(node, "left")), read.text(child(node, "operator"))
    right = child(node, "right")
    if sign != "=":
        return _signed(Step(name, cast(Operator, sign.removesuffix("=")), read.read(right)))
    while right.type == "parenthesized_expression":
        right = right.named_children[0]
    if right.type == "binary_expression":
        op = cast(Operator, read.text(child(right, "operator")))
        left, by = child(right, "left"), child(right, "right")
        if op in {"+", "*"} and read.text(by) == name:
            left, by = by, left
        if read.text(left) == name:
            return _signed(Step(name, op, read.read(by)))
    raise Unliftable(f"steps a loop by {read.text(node)}")


def _signed(step: Step) -> Step:
    value = constant(step.by)
    if value is not None and value < 0 and step.op in {"+", "-"}:
        return Step(step.name, "-" if step.op == "+" else "+", Const(-value, step.by.dtype))
    return step


def _condition(reader: Statements, node: Node, steps: dict[str, Step]) -> tuple[str, str, Node]:
    """Find which variable a condition tests, how, and against what."""
    if node.type == "identifier" and reader.read.text(node) in steps:
        return reader.read.text(node), "!=", node  # the bound is not used: such a loop is unrolled
    if node.type == "binary_expression":
        op = reader.read.text(child(node, "operator"))
        left, right = child(node, "left"), child(node, "right")
        if op in _MIRRORED and reader.read.text(left) in steps:
            return reader.read.text(left), op, right
        if op in _MIRRORED and reader.read.text(right) in steps:
            return reader.read.text(right), _MIRRORED[op], left
    raise Unliftable(f"has a loop while {' '.join(reader.read.text(node).split())[:40]}")


def _start(reader: Statements, variable: Var, begun: list[Stmt]) -> tuple[Expr, bool]:
    """Give a loop variable's first value, and whether the loop may use the variable's own name."""
    for s in begun:
        if isinstance(s, Let | Assign) and s.name == variable.name and s.value is not None:
            return s.value, True
    for k in range(len(reader.out) - 1, -1, -1):
        s = reader.out[k]
        if isinstance(s, Let) and s.name == variable.name and s.value is not None:
            del reader.out[k]
            return s.value, True
        inside = [e for x in statements((s,)) for e in expressions(x)]
        if any(depends(e, {variable.name}) for e in inside) or _sets(s, variable.name):
            break
    return variable, False


def _sets(s: Stmt, name: str) -> bool:
    return any(isinstance(x, Assign | Accumulate) and x.name == name for x in statements((s,)))


def _counting(reader: Statements, count: _Count, others: list[Step], body: list[Node], own: bool) -> None:
    scopes = reader.scopes
    dtype = count.variable.dtype
    name = count.variable.name if own else scopes.fresh(count.name)
    loop_variable = Var(name, dtype)
    start, stop, value = _range(count, loop_variable)
    trailing, body = _trailing_moves(reader, body)
    scopes.push("loop")
    scopes.declare(count.name, Scalar(value))
    passed = (
        loop_variable if constant(start) == 0 else Op("-", (loop_variable, start), common(dtype, start.dtype))
    )
    for other in [*others, *trailing]:
        _follow(reader, other, count, passed)
    inside = reader.nested(body, "loop", CONTINUE)
    scopes.pop()
    by = count.step.by if count.step.op == "+" else Const(1, "i32")
    _check(count.name, name, (stop, by), inside)
    reader.out.append(
        Loop(name, dtype, start, stop, convert(by, dtype) if isinstance(by, Const) else by, inside)
    )
    for other in [*others, *trailing]:
        meaning = scopes.find(other.name)
        if isinstance(meaning, Pointer):
            scopes.set(
                other.name,
                Forgotten(f"uses pointer {other.name} after the loop that moves it", loop_variable),
            )
        elif (variable := scopes.variable(other.name)) is not None:
            scopes.set(other.name, Forgotten(f"reads {other.name} after the loop that steps it", variable))


def _range(count: _Count, loop_variable: Var) -> tuple[Expr, Expr, Expr]:
    """Give a loop's start, stop and the value of the user's variable in it."""
    dtype = count.variable.dtype
    one = Const(1, "i32")
    unit = constant(count.step.by) == 1
    match count.op, count.step.op:
        case ("<", "+"):
            return count.start, count.bound, loop_variable
        case ("<=", "+"):
            return count.start, simplify(arithmetic("+", count.bound, one)), loop_variable
        case ("!=", "+") if unit:
            return count.start, count.bound, loop_variable
        case (">" | ">=" | "!=", "-") if unit:
            length = arithmetic("-", count.start, count.bound)
            if count.op == ">=":
                length = arithmetic("+", length, one)
            return Const(0, dtype), simplify(length), arithmetic("-", count.start, loop_variable)
    raise Unliftable(f"has a loop over {count.name} that does not count up or down to a bound")


def _trailing_moves(reader: Statements, body: list[Node]) -> tuple[list[Step], list[Node]]:
    """Take pointers' steps off a loop's end: ``p += n`` each time round."""
    moves: list[Step] = []
    while body and body[-1].type == "expression_statement" and body[-1].named_child_count == 1:
        last = body[-1].named_children[0]
        names = list(changed(reader.read, last))
        if last.type not in {"assignment_expression", "update_expression"} or len(names) != 1:
            break
        others = [n for node in body[:-1] for n in changed(reader.read, node)]
        if not isinstance(reader.scopes.find(names[0]), Pointer) or names[0] in others:
            break
        step = _step(reader, last)
        if step.op not in {"+", "-"}:
            break
        moves.append(step)
        body = body[:-1]
    return moves, body


def _follow(reader: Statements, other: Step, count: _Count, passed: Expr) -> None:
    """Write a variable or pointer that steps along as what it is in the current iteration."""
    if other.op not in {"+", "-"}:
        raise Unliftable(f"has a loop that changes {other.name} too")
    distance = _distance(passed, count.step.by, other.by)
    meaning = reader.scopes.find(other.name)
    op: Literal["+", "-"] = "+" if other.op == "+" else "-"
    if isinstance(meaning, Pointer):
        reader.scopes.declare(other.name, reader.read.moved(meaning, op, distance))
    elif (variable := reader.scopes.variable(other.name)) is not None:
        value = convert(arithmetic(op, variable, distance), variable.dtype)
        reader.scopes.declare(other.name, Scalar(value))
    else:
        raise Unliftable(f"has a loop that changes {other.name} too")


def _distance(passed: Expr, step: Expr, by: Expr) -> Expr:
    """Scale how far a loop's variable came to how far one that steps along did."""
    if equal(step, by):
        return passed
    own, other = constant(step), constant(by)
    if own is not None and other is not None and other % own == 0:
        return arithmetic("*", passed, Const(other // own, "i32"))
    return arithmetic("*", passed if own == 1 else arithmetic("/", passed, step), by)


def _check(user: str, name: str, bounds: tuple[Expr, ...], body: tuple[Stmt, ...]) -> None:
    """Hold a loop to what the form promises: its variable and bounds do not change inside it."""
    set_inside = {s.name for s in statements(body) if isinstance(s, Assign | Accumulate)}
    stored = {s.buffer for s in statements(body) if isinstance(s, Store)}
    if name in set_inside:
        raise Unliftable(f"changes loop variable {user} inside its loop")
    if any(depends(b, set_inside | stored | {name}) for b in bounds):
        raise Unliftable(f"changes the bounds of the loop over {user} inside it")


def _unrolled(
    reader: Statements, name: str, dtype: Dtype, start: Expr, condition: Node, step: Step, body: list[Node]
) -> None:
    """Write every iteration of a loop such as ``for (s = 128; s > 0; s >>= 1)`` out."""
    value = reader.read.known(start)
    for _ in range(_MOST_UNROLLED):
        if not isinstance(value, Const):
            raise Unliftable(
                f"has a loop over {name} that does not count up, from a start that is not known here"
            )
        reader.scopes.push("plain")
        reader.scopes.declare(name, Scalar(value))
        more = reader.read.known(truth(reader.read.read(condition)))
        if not isinstance(more, Const):
            raise Unliftable(
                f"has a loop over {name} that does not count up, to an end that is not known here"
            )
        if more.value:
            reader.out += reader.nested(body, "plain", None, spliced=True)
        reader.scopes.pop(spliced=True)
        if not more.value:
            return
        value = reader.read.known(convert(arithmetic(step.op, value, step.by), dtype))
    raise Unliftable(f"has a loop over {name} that runs too often to be written out")
