"""Find pyopencl launches of a kernel: ``program.NAME(queue, global, local, ...)`` and what amounts to it."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mb_targets.opencl.python_names import Names, dotted, is_near, names
from mb_targets.opencl.sites import Site, Sizes, Span

_OF_KERNELS = re.compile(
    r"set_(?:args?|scalar_arg_dtypes|arg_types)|get_\w*info|num_args|function_name|release"
)
_SHOWING = re.compile(r"print|(?:\w+\.)*(?:debug|info|warning|error|add_argument)")
_OPENCL = re.compile(r"(?i)opencl|\.(?:cl|clh|ocl)\b")
_FEWEST = 3
_UNREAD = "how it is launched from there could not be read"


def sites(path: Path, text: str, name: str) -> list[Site]:
    """List the launches of a kernel in a Python program; one that cannot be read carries the reason.

    What is called on a module is that module's own; what is called on anything that could not be traced to
    ``cl.Program`` may be a launch, and is not to be edited.
    """
    uses_opencl = "pyopencl" in text
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        found = re.search(rf"\b{re.escape(name)}\b", text) if uses_opencl else None
        where = Span(found.start(), found.end(), name) if found else None
        return [Site(path, text, "python", where, reason="this Python does not parse")] if where else []
    concerned = bool(_OPENCL.search(text)) or any(is_near(n, path.parent) for n in ast.walk(tree))
    reader = _Reader(path, _Source(text), name, names(tree, name, path.parent), uses_opencl, concerned)
    launches, explained = reader.launches(tree)
    unread = [reader.unread(node, why) for node, why in reader.unexplained(tree, explained)]
    options = _options(reader.source, tree)
    return [replace(s, options=options) for s in [*launches, *unread]]


class _Source:
    """A text whose places the syntax tree names by line and by bytes of UTF-8."""

    def __init__(self, text: str) -> None:
        self.text = text
        # The parser ends lines where Python does, which str.splitlines does not.
        self._lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n|\Z)", text)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.expr) -> Span:
        """Give a node's characters."""
        start = self._offset(node.lineno, node.col_offset)
        end = self._offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
        return Span(start, end, self.text[start:end])

    def _offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode(errors="ignore"))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one program, knowing what its names stand for.

    Attributes:
        uses_opencl: Whether it launches kernels itself.
        concerned: Whether it may at least pass their names to something that does.
    """

    path: Path
    source: _Source
    name: str
    known: Names
    uses_opencl: bool
    concerned: bool

    def launches(self, tree: ast.AST) -> tuple[list[Site], set[ast.AST]]:
        """List the launches, and the nodes in which the kernel is named as it may be."""
        found: list[Site] = []
        explained: set[ast.AST] = set()
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=func) if self.known.is_kernel(func):
                    kernel, sizes, passed = func, node.args[1:3], node.args[3:]
                case ast.Call(func=func, args=[_, kernel, *sizes]) if dotted(func).endswith(
                    "enqueue_nd_range_kernel"
                ) and self.known.is_kernel(kernel):
                    sizes, passed = sizes[:2], []
                case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value) if (
                    self.known.is_kernel(value)
                ):
                    explained.update(ast.walk(value))
                    continue
                case ast.Attribute(value=value, attr=attr) if _OF_KERNELS.fullmatch(attr) and (
                    self.known.is_kernel(value)
                ):
                    explained.update(ast.walk(value))
                    continue
                case _:
                    continue
            explained.update(ast.walk(kernel))
            found.append(self._site(node, kernel, sizes, passed))
        return found, explained

    def unexplained(self, tree: ast.AST, explained: set[ast.AST]) -> Iterator[tuple[ast.expr, str]]:
        """Give the other places that name the kernel in a way that may launch it."""
        called = {n.func for n in ast.walk(tree) if isinstance(n, ast.Call)}
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(attr=self.name) as func, args=passed):
                    if func not in explained and self._may_launch(func.value, passed):
                        yield node, "what it is called on could not be traced to `cl.Program`"
                case ast.Call(func=func, args=passed, keywords=named) if not _SHOWING.fullmatch(dotted(func)):
                    given = [*passed, *(k.value for k in named)]
                    yield from ((a, _UNREAD) for a in given if self._is_text(a) and a not in explained)
                case ast.Subscript(slice=ast.expr() as key) if self._is_text(key):
                    yield key, _UNREAD
                case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) if self.uses_opencl:
                    yield from ((a, _UNREAD) for a in parts if self._is_text(a))
                case ast.Name(ctx=ast.Load()) | ast.Attribute(ctx=ast.Load()) if node not in explained:
                    if self.known.is_kernel(node) or (node not in called and self._may_be_kernel(node)):
                        yield node, _UNREAD

    def unread(self, node: ast.expr, why: str) -> Site:
        """Make a site that says why it cannot be edited."""
        return Site(self.path, self.source.text, "python", self.source.span(node), reason=why)

    def _site(self, node: ast.Call, kernel: ast.expr, sizes: list[ast.expr], passed: list[ast.expr]) -> Site:
        base = kernel.value if isinstance(kernel, ast.Attribute) else kernel
        for held in (dotted(kernel), dotted(base)):
            if held in self.known.mixed:
                return self.unread(node, f"`{held}` is also given another value")
        if len(sizes) < 2 or any(isinstance(a, ast.Starred) for a in sizes):
            return self.unread(node, "its sizes are not written out in the call")
        read = [_sizes(self.source, s) for s in sizes]
        reason = "" if read[0] and read[1] else "its sizes are computed in the call"
        arguments = {
            i: self.source.span(a).text for i, a in enumerate(passed) if not isinstance(a, ast.Starred)
        }
        call = self.source.span(node)
        return Site(self.path, self.source.text, "python", call, read[0], read[1], arguments, reason=reason)

    def _may_launch(self, receiver: ast.expr, passed: list[ast.expr]) -> bool:
        enough = len(passed) >= _FEWEST or any(isinstance(a, ast.Starred) for a in passed)
        return enough and not self.known.is_of_module(receiver)

    def _may_be_kernel(self, node: ast.expr) -> bool:
        return (
            self.uses_opencl
            and isinstance(node, ast.Attribute)
            and node.attr == self.name
            and dotted(node) not in self.known.stored
            and not self.known.is_of_module(node)
        )

    def _is_text(self, node: ast.expr) -> bool:
        return self.concerned and isinstance(node, ast.Constant) and node.value == self.name


def _sizes(source: _Source, node: ast.expr) -> Sizes | None:
    whole = source.span(node)
    match node:
        case ast.Constant(value=None):
            return Sizes(whole, (), "tuple")
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            if any(isinstance(e, ast.Starred) for e in elements):
                return None
            return Sizes(whole, tuple(source.span(e) for e in elements), "tuple")
        case ast.Name() | ast.Attribute():
            return Sizes(whole, (), "tuple", name=whole.text, shared=True)
        case _:
            return None


def _options(source: _Source, tree: ast.AST) -> Span | None:
    """Find the one ``.build(...)`` call; its span is that of its argument list."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and dotted(n.func).endswith("build")]
    if len(calls) != 1:
        return None
    whole, function = source.span(calls[0]), source.span(calls[0].func)
    opened = source.text.index("(", function.end)
    return Span(opened + 1, whole.end - 1, source.text[opened + 1 : whole.end - 1])
