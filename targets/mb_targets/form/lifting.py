"""The lifter that all C-like languages share: a kernel's source and launch to its form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tree_sitter import Node

from mb_targets.form import macros
from mb_targets.form.affine import depends, simplify, substitute
from mb_targets.form.canonical import canonical
from mb_targets.form.cexpr import Expressions
from mb_targets.form.cfunction import Function, Reader
from mb_targets.form.cnodes import child
from mb_targets.form.conversions import convert
from mb_targets.form.copies import without_copies
from mb_targets.form.dialect import GLOBAL, GROUP, GROUPS, LOCAL, LOCAL_SIZE, Dialect, Unliftable
from mb_targets.form.dtypes import is_integer
from mb_targets.form.fission import without_items
from mb_targets.form.guards import sunk, take_guards
from mb_targets.form.nest import (
    Array,
    Axis,
    Barrier,
    Buffer,
    Call,
    Cast,
    Const,
    DoesNotLift,
    Expr,
    Form,
    Let,
    Loop,
    Stmt,
    Store,
    Var,
)
from mb_targets.form.scope import Scopes
from mb_targets.form.sizes import Extents, local_size
from mb_targets.form.slices import merged_slices
from mb_targets.form.traverse import expressions, loads, map_expressions, statements, transform, walk
from mb_targets.model import Dtype, LaunchSpec

_NAMES = "xyz"
_GROUP_NAMES = ("group", "group_y", "group_z")


@dataclass(frozen=True, slots=True)
class Work:
    """What to lift.

    Attributes:
        name: The function.
        source: Its translation unit.
        launch: How it is launched; None where that is unknown or means nothing.
        required: Work-group size by dimension that the kernel itself asks for, over the source's macros.
        single: Whether unsuffixed floating literals are ``float``.
    """

    name: str
    source: str
    launch: LaunchSpec | None = None
    required: tuple[str, ...] = ()
    single: bool = False


def lift(work: Work, dialect: Dialect) -> Form | DoesNotLift:
    """Lift a function, or say why it has no form."""
    try:
        return _lift(work, dialect)
    except (Unliftable, macros.Unknown) as e:
        return DoesNotLift(str(e))


def _lift(work: Work, dialect: Dialect) -> Form:
    options = work.launch.options if work.launch is not None else ()
    expanded = macros.expand(
        work.source, macros.from_options(options), lambda text: bool(_value(text, dialect, {}))
    )
    root = dialect.parse(expanded.text).root_node
    numbers = {**_file_constants(expanded.text, root), **expanded.numbers}
    sizes = local_size(work.launch)
    if work.required:
        sizes = tuple(_value(t, dialect, numbers) for t in work.required)
    dialect = replace(dialect, types=_with_typedefs(expanded.text, root, dialect.types))
    reader = Reader(expanded.text, root, dialect, numbers, sizes, work.single)
    return _Assembly(work, reader.function(work.name), sizes).form()


def _with_typedefs(source: str, root: Node, types: Mapping[str, Dtype]) -> Mapping[str, Dtype]:
    """Add the names that a source gives to types which are known."""
    known = dict(types)
    for node in root.named_children:
        if node.type == "type_definition":
            of = child(node, "type")
            dtype = known.get(" ".join(source[of.start_byte : of.end_byte].split()))
            for name in node.children_by_field_name("declarator"):
                if dtype is not None and name.type in {"type_identifier", "primitive_type"}:
                    known[source[name.start_byte : name.end_byte]] = dtype
    return known


def _value(text: str, dialect: Dialect, numbers: Mapping[str, str]) -> int:
    """Work out a constant expression."""
    source = f"int x = ({text});"
    node = child(dialect.parse(source).root_node.named_children[0], "declarator")
    reader = Expressions(source, dialect, numbers, Scopes(), (), lambda name, arguments: None, False)
    value = reader.known(reader.read(child(node, "value")))
    if not isinstance(value, Const):
        raise macros.Unknown(f"depends on {text}, which has no value here")
    return int(value.value)


def _file_constants(source: str, root: Node) -> dict[str, str]:
    """Find constants declared outside functions."""
    text = "\n".join(
        source[n.start_byte : n.end_byte] for n in root.named_children if n.type == "declaration"
    )
    number = r"[-(\s]*(?:0[xX][\da-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)[uUlLfF]*[)\s]*"
    return dict(re.findall(rf"\bconst\b[^;{{}}]*?\b(\w+)\s*=\s*({number});", text))


class _Assembly:
    """Puts a form together from a function as read."""

    def __init__(self, work: Work, function: Function, sizes: tuple[int | None, ...]) -> None:
        self._work = work
        self._function = function
        self._sizes = sizes
        self._scalars = tuple(Var(p.name, p.dtype) for p in function.parameters if p.space is None)
        self._extents = Extents(work.launch, self._scalars)
        self._taken = {p.name for p in function.parameters} | {v.name for v in function.aliases.values()}
        self._taken |= {s.name for s in statements(function.body) if isinstance(s, Let | Loop | Array)}

    def form(self) -> Form:
        """Resolve the ids, take guards off, and name everything."""
        body = self._without_tiles(canonical(self._function.body))
        grouped = {k for k in range(3) if _mentions(body, {f"{LOCAL}{k}", f"{GROUP}{k}"})}
        if any(isinstance(s, Array | Barrier) for s in statements(body)):
            grouped |= {0}
        body = self._with_counts(body)
        if any(isinstance(s, Array | Barrier) for s in statements(body)):
            self._refuse_planes(body)
        needs_size = bool(grouped) or _mentions(body, {f"{LOCAL_SIZE}{k}" for k in range(3)})
        if needs_size:
            body = self._with_sizes(body)
        for k in sorted(grouped):
            item = Var(self._name(f"{LOCAL}{k}", "lid"), "i32")
            body = canonical(without_items(body, k, self._size(k), item, self._taken, self._extents.items(k)))
        body, guards = take_guards(sunk(body, self._names()), self._names())
        axes = tuple(
            self._axis(body, k, k in grouped, guards)
            for k in range(3)
            if self._uses(body, guards, k, grouped)
        )
        named = {f"{GROUP if a.level == 'group' else GLOBAL}{a.dim}": Var(a.name, a.dtype) for a in axes}
        body = canonical(_renamed(body, named))
        self._refuse_leftovers(body)
        size = tuple(n or 1 for n in self._sizes) if needs_size else None
        return Form(self._work.name, tuple(self._buffers(body)), self._scalars, axes, body, size)

    def _without_tiles(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Take local memory out where it only holds copies."""
        if not any(isinstance(s, Array) for s in statements(body)):
            return body
        items = without_copies(self._with_sizes(body), self._sizes)
        if items is None:
            return body
        return canonical(merged_slices(sunk(items, self._names()), self._extents.multiples()))

    def _names(self) -> set[str]:
        return {v.name for v in self._scalars}

    def _with_counts(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Put in how many items there are, where the launch tells: a variant may launch others."""

        def one(e: Expr) -> Expr:
            if isinstance(e, Call) and e.function == "get_global_size" and isinstance(e.args[0], Const):
                count = self._extents.items(int(e.args[0].value))
                return e if count is None else convert(count, e.dtype)
            return convert(e.value, e.dtype) if isinstance(e, Cast) and isinstance(e.value, Const) else e

        return tuple(map_expressions(s, lambda e: transform(e, one)) for s in body)

    def _with_sizes(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        known: dict[str, Expr] = {
            f"{LOCAL_SIZE}{k}": Const(n, "u64") for k, n in enumerate(self._sizes) if n is not None
        }
        return tuple(map_expressions(s, lambda e: simplify(substitute(e, known))) for s in body)

    def _size(self, dim: int) -> int:
        size = self._sizes[dim] if dim < len(self._sizes) else 1
        if size is None:
            raise Unliftable("the work-group size is not known: give local=(..) in the launch")
        return size

    def _uses(
        self, body: tuple[Stmt, ...], guards: Mapping[str, Expr], dim: int, grouped: Iterable[int]
    ) -> bool:
        name = f"{GROUP if dim in grouped else GLOBAL}{dim}"
        return name in guards or _mentions(body, {name})

    def _axis(self, body: tuple[Stmt, ...], dim: int, group: bool, guards: Mapping[str, Expr]) -> Axis:
        kind = f"{GROUP if group else GLOBAL}{dim}"
        alias = self._function.aliases.get(kind)
        name = self._name(kind, _GROUP_NAMES[dim] if group else _NAMES[dim])
        dtype = alias.dtype if alias is not None else "i32" if group else _narrowest(body, kind)
        extent = guards.get(kind)
        if extent is None:
            extent = self._extents.groups(dim, self._size(dim)) if group else self._extents.items(dim)
        return Axis(name, dtype, dim, "group" if group else "item", extent, kind in guards)

    def _name(self, kind: str, otherwise: str) -> str:
        alias = self._function.aliases.get(kind)
        if alias is not None:
            return alias.name
        name, count = otherwise, 1
        while name in self._taken:
            name, count = f"{otherwise}_{count}", count + 1
        return name

    def _buffers(self, body: tuple[Stmt, ...]) -> Iterable[Buffer]:
        read = {load.buffer for load in loads(body)}
        written = {s.buffer for s in statements(body) if isinstance(s, Store)}
        for p in self._function.parameters:
            if p.space == "global" or p.space == "constant":
                yield Buffer(p.name, p.dtype, p.space, p.name in read, p.name in written)
            elif p.space == "local" and p.name in read | written:
                raise Unliftable(f"uses local memory {p.name} in a way that is no reduction")

    def _refuse_planes(self, body: tuple[Stmt, ...]) -> None:
        """Local memory is understood where the items of a group stand in one row."""
        for k in (1, 2):
            used = _mentions(body, {f"{kind}{k}" for kind in (GLOBAL, LOCAL, GROUP)})
            if used and k < len(self._sizes) and self._sizes[k] not in {None, 1}:
                raise Unliftable("shares local memory in a group of more than one dimension")

    def _refuse_leftovers(self, body: tuple[Stmt, ...]) -> None:
        words = {
            LOCAL: "local id", GROUP: "group id", GLOBAL: "global id", LOCAL_SIZE: "work-group size",
            GROUPS: "number of groups",
        }  # fmt: skip
        for s in statements(body):
            if isinstance(s, Array | Barrier):
                raise Unliftable("uses local memory in a way that is no reduction tree")
            for e in (x for top in expressions(s) for x in walk(top)):
                if isinstance(e, Var) and e.name.startswith("@"):
                    raise Unliftable(f"uses the {words[e.name[:-1]]} in a way that is not understood")


def _mentions(body: tuple[Stmt, ...], names: set[str]) -> bool:
    return any(depends(e, names) for s in statements(body) for e in expressions(s))


def _narrowest(body: tuple[Stmt, ...], kind: str) -> Dtype:
    """Give the one dtype that every use converts an id to, or else the id's own."""
    own: list[Dtype] = []
    cast: list[Dtype] = []
    for e in (x for s in statements(body) for top in expressions(s) for x in walk(top)):
        if isinstance(e, Var) and e.name == kind:
            own.append(e.dtype)
        elif isinstance(e, Cast) and isinstance(e.value, Var) and e.value.name == kind:
            cast.append(e.dtype)
    if len(cast) == len(own) and len(set(cast)) == 1:
        return cast[0]
    return own[0] if len(set(own)) == 1 else "u64"


def _renamed(body: tuple[Stmt, ...], names: Mapping[str, Var]) -> tuple[Stmt, ...]:
    """Put the axes' variables in for the ids."""

    def one(e: Expr) -> Expr:
        if isinstance(e, Var) and e.name in names:
            return convert(names[e.name], e.dtype)
        if isinstance(e, Cast) and isinstance(e.value, Cast) and isinstance(e.value.value, Var):
            inner = e.value.value
            if is_integer(e.dtype) and is_integer(e.value.dtype) and inner.dtype == e.dtype:
                return inner
        return e

    return tuple(map_expressions(s, lambda e: transform(e, one)) for s in body)
