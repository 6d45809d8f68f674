"""What the names of a pyopencl program stand for: programs, kernels taken from them, modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one Python program, scopes put together.

    Attributes:
        programs: Dotted names that hold an OpenCL program.
        kernels: Dotted names that hold the kernel.
        mixed: Those among them that are also given something else.
        modules: Names bound by an import of something that is no part of the workspace.
        stored: Dotted names that are assigned anything.
        builders: Functions that return a program.
    """

    name: str
    programs: set[str] = field(default_factory=set)
    kernels: set[str] = field(default_factory=set)
    mixed: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    builders: set[str] = field(default_factory=set)

    def is_program(self, node: ast.expr) -> bool:
        """Tell whether an expression is ``cl.Program(...)``, what ``build`` gives, or a name for one."""
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr="build" | "compile")):
                return self.is_program(inner)
            case ast.Call(func=func):
                called = dotted(func)
                last = called.rpartition(".")[2]
                return last in ("Program", "link_program") or last in self.builders
            case ast.NamedExpr(value=inner):
                return self.is_program(inner)
            case _:
                return dotted(node) in self.programs

    def is_kernel(self, node: ast.expr) -> bool:
        """Tell whether an expression is ``program.NAME``, ``cl.Kernel(program, "NAME")``, or named so."""
        match node:
            case ast.Attribute(value=value, attr=self.name):
                return self.is_program(value)
            case ast.Call(func=func, args=[_, ast.Constant(value=given)]):
                return given == self.name and dotted(func).rpartition(".")[2] == "Kernel"
            case _:
                return dotted(node) in self.kernels

    def is_of_module(self, node: ast.expr) -> bool:
        """Tell whether an expression begins with an imported name."""
        return dotted(node).partition(".")[0].removesuffix("()") in self.modules


def names(tree: ast.AST, kernel: str, folder: Path) -> Names:
    """Follow what is assigned until nothing new is learned.

    Args:
        tree: The program.
        kernel: The kernel's name.
        folder: Where the program lies.
    """
    found = Names(kernel)
    assigned = list(_assigned(tree))
    found.stored.update(target for target, _ in assigned)
    for node in ast.walk(tree):
        found.modules.update(_imported(node, folder))
        found.programs.update(_annotated(node))
    for _ in range(_ROUNDS):
        before = len(found.programs) + len(found.kernels) + len(found.builders)
        found.programs.update(t for t, value in assigned if value is not None and found.is_program(value))
        found.kernels.update(t for t, value in assigned if value is not None and found.is_kernel(value))
        found.builders.update(_builders(tree, found))
        if before == len(found.programs) + len(found.kernels) + len(found.builders):
            break
    found.mixed.update(t for t, value in assigned if _is_another(found, t, value))
    # Which kernel a function is given is its callers' business.
    found.mixed.update(n.arg for n in ast.walk(tree) if isinstance(n, ast.arg) and n.arg in found.kernels)
    return found


def dotted(node: ast.expr) -> str:
    """Write ``self.program`` as text; a call in it as ``()``, anything else as nothing."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            inner = dotted(value)
            return f"{inner}.{attr}" if inner else ""
        case ast.Call(func=func):
            inner = dotted(func)
            return f"{inner}()" if inner else ""
        case _:
            return ""


def is_near(node: ast.AST, folder: Path) -> bool:
    """Tell whether a node imports something that lies beside the program."""
    match node:
        case ast.Import(names=modules):
            return any(_is_near(a.name, folder) for a in modules)
        case ast.ImportFrom(module=module, level=level):
            return level > 0 or _is_near(module or "", folder)
        case _:
            return False


def _imported(node: ast.AST, folder: Path) -> Iterator[str]:
    """Name what an import binds, unless it comes from beside the program: that may hand out programs."""
    if isinstance(node, ast.Import):
        yield from (
            (a.asname or a.name).partition(".")[0] for a in node.names if not _is_near(a.name, folder)
        )
    elif isinstance(node, ast.ImportFrom) and not is_near(node, folder):
        yield from (a.asname or a.name for a in node.names)


def _annotated(node: ast.AST) -> Iterator[str]:
    """Name a parameter or variable that is declared to be a program."""
    match node:
        case ast.arg(arg=name, annotation=ast.expr() as kind):
            pass
        case ast.AnnAssign(target=target, annotation=kind):
            name = dotted(target)
        case _:
            return
    if name and dotted(kind).rpartition(".")[2] == "Program":
        yield name


def _is_near(module: str, folder: Path) -> bool:
    top = module.partition(".")[0]
    near = (folder, *folder.parents[:2])
    return any((f / f"{top}.py").is_file() or (f / top / "__init__.py").is_file() for f in near)


def _is_another(found: Names, target: str, value: ast.expr | None) -> bool:
    if target not in found.programs | found.kernels:
        return False
    if isinstance(value, ast.Constant) and value.value is None:
        return False
    return value is None or not (
        found.is_kernel(value) if target in found.kernels else found.is_program(value)
    )


def _assigned(tree: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Give each name that is assigned and its value, None where that cannot be told."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value):
                pairs = [pair for target in targets for pair in _paired(target, value)]
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.NamedExpr(target=target, value=value)
            ):
                pairs = [(target, value)]
            case ast.For(target=target) | ast.comprehension(target=target) | ast.AugAssign(target=target):
                pairs = [(t, None) for t in _parts(target)]
            case ast.withitem(optional_vars=ast.expr() as target):
                pairs = [(t, None) for t in _parts(target)]
            case _:
                continue
        yield from ((name, given) for target, given in pairs if (name := dotted(target)))


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    if not isinstance(target, ast.Tuple | ast.List):
        yield target, value
    elif isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        yield from ((t, None) for t in _parts(target))


def _parts(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, ast.Tuple | ast.List) else [target]


def _builders(tree: ast.AST, found: Names) -> Iterator[str]:
    """Name the functions all of whose results are programs."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            results = [n.value for n in ast.walk(node) if isinstance(n, ast.Return)]
            if results and all(r is not None and found.is_program(r) for r in results):
                yield node.name
