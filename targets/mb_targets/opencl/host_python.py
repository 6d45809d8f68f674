"""Find pyopencl launches of a kernel: ``program.NAME(queue, global, local, ...)`` and what amounts to it."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeGuard

from mb_targets.opencl.sites import Site, Sizes, Span


def sites(path: Path, text: str, name: str) -> list[Site]:
    """List the launches of a kernel in a Python program; none for one that does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    source = _Source(text)
    bound = {_dotted(t) for n in ast.walk(tree) for t in _targets(n) if _takes_kernel(n, name)}
    found = [s for n in ast.walk(tree) if (s := _site(path, source, n, name, bound - {""}))]
    if not found and (mention := next((n for n in ast.walk(tree) if _passes(n, name)), None)):
        reason = "how it is launched from there could not be read"
        return [Site(path, text, "python", source.span(mention), reason=reason)]
    options = _options(source, tree)
    return [replace(s, options=options) for s in found]


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


def _site(path: Path, source: _Source, node: ast.AST, name: str, bound: set[str]) -> Site | None:
    if not isinstance(node, ast.Call):
        return None
    called = _dotted(node.func)
    direct = isinstance(node.func, ast.Attribute) and node.func.attr == name
    if direct or called in bound:
        sizes, passed = node.args[1:3], node.args[3:]
    elif called.endswith("enqueue_nd_range_kernel") and len(node.args) > 1 and _dotted(node.args[1]) in bound:
        sizes, passed = node.args[2:4], []
    else:
        return None
    call = source.span(node)
    if len(sizes) < 2 or any(isinstance(a, ast.Starred) for a in sizes):
        return Site(path, source.text, "python", call, reason="its sizes are not written out in the call")
    read = [_sizes(source, s) for s in sizes]
    reason = "" if read[0] and read[1] else "its sizes are computed in the call"
    arguments = {i: source.span(a).text for i, a in enumerate(passed) if not isinstance(a, ast.Starred)}
    return Site(path, source.text, "python", call, read[0], read[1], arguments, reason=reason)


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


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Assign):
        yield from node.targets
    elif isinstance(node, ast.AnnAssign):
        yield node.target


def _takes_kernel(node: ast.AST, name: str) -> bool:
    """Tell whether an assignment takes the kernel: ``program.NAME`` or ``cl.Kernel(program, "NAME")``."""
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    match value:
        case ast.Attribute(attr=attr):
            return attr == name
        case ast.Call(func=func, args=[_, ast.Constant(value=given)]):
            return given == name and _dotted(func).endswith("Kernel")
        case _:
            return False


def _passes(node: ast.AST, name: str) -> TypeGuard[ast.Call]:
    """Tell whether a call is given the kernel's name as text."""
    return isinstance(node, ast.Call) and any(
        isinstance(a, ast.Constant) and a.value == name for a in node.args
    )


def _options(source: _Source, tree: ast.AST) -> Span | None:
    """Find the one ``.build(...)`` call; its span is that of its argument list."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and _dotted(n.func).endswith("build")]
    if len(calls) != 1:
        return None
    whole, function = source.span(calls[0]), source.span(calls[0].func)
    opened = source.text.index("(", function.end)
    return Span(opened + 1, whole.end - 1, source.text[opened + 1 : whole.end - 1])


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{_dotted(value)}.{attr}"
        case ast.Call(func=func):
            return f"{_dotted(func)}()"
        case _:
            return ""
