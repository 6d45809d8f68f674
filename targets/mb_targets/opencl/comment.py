"""The ``// mb:`` lines above a kernel: read them, and write a launch as such lines.

::

    // mb: global=(N,M) local=(16,16) N=1024 M=768:1..4096 K=512 N%16
    // mb: A=f32[M*K] B=f32[K*N] idx=i32[N]{0..N-1} C=out f32[M*N] alpha=1.5 tol=1e-4 opts="-DTILE=16"

Lines that start with ``// mb: file`` hold for every kernel of the file; a kernel's own say more.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mb_targets import expression
from mb_targets.model import Argument, Kernel, LaunchSpec, Symbol
from mb_targets.opencl import elements
from mb_targets.opencl.fragment import Fragment, FragmentError, add, merge

_LINE = re.compile(r"^[ \t]*//[ \t]*mb:[ \t]*(?P<file>file\b[ \t]*)?(?P<items>[^\r\n]*)", re.MULTILINE)
_KEY = re.compile(r"\s*(?P<key>[A-Za-z_]\w*)\s*(?P<sign>[=%])\s*")
_NEXT = re.compile(r"\s+(?=[A-Za-z_]\w*\s*(?:=|%\d+(?:\s|$)))|\s*$")
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Item:
    """One ``key=value`` of a comment, with the offsets of its value in the source."""

    key: str
    sign: str
    value: str
    start: int
    end: int


def items(kernel: Kernel) -> list[Item]:
    """List the items of the lines directly above a kernel.

    Raises:
        FragmentError: A line cannot be cut into items.
    """
    return [i for line in _own_lines(kernel) for i in _items(kernel.source, line)]


def read(kernel: Kernel) -> Fragment | None:
    """Read the kernel's own lines and those of its file; None where there are none.

    Raises:
        FragmentError: An item cannot be read; the message gives the line and says what was expected.
    """
    own = [i for line in _own_lines(kernel) for i in _items(kernel.source, line)]
    shared = [i for line in _file_lines(kernel) for i in _items(kernel.source, line)]
    if not own and not shared:
        return None
    names = [p.name for p in kernel.parameters]
    for item in own:
        if item.value.endswith(("]", "}")) and item.key not in names:
            raise FragmentError(
                f"{place(kernel, item.start)}: `{item.key}` is no parameter of {kernel.name}; "
                f"its parameters are {', '.join(names)}"
            )
    return merge([_fragment(kernel, own), _fragment(kernel, shared)])


def place(kernel: Kernel, offset: int) -> str:
    """Name a place in a kernel's source for a person: ``line 3``."""
    return f"line {kernel.source.count(chr(10), 0, offset) + 1}"


def describe_launch(kernel: Kernel, launch: LaunchSpec) -> str:
    """Write a launch as ``// mb:`` lines that give the same launch when read back."""
    words = [f"global={sizes_text(launch.global_size)}"]
    words.append(f"local={sizes_text(launch.local_size)}" if launch.local_size is not None else "local=none")
    for symbol in launch.symbols:
        words += _symbol(symbol)
    for argument in launch.arguments:
        words += _argument(kernel, argument, launch.options)
    if launch.tolerance is not None:
        words.append(f"tol={launch.tolerance!r}")
    if launch.options:
        words.append(f"opts={json.dumps(shlex.join(launch.options), ensure_ascii=False)}")
    return "\n".join(_wrapped(words))


def default_range(value: float) -> tuple[float, float]:
    """Give the range of a symbol that states none: sizes start at 1, a value that is no size stays put."""
    return (min(1, value), 1 << 31) if value == value // 1 else (value, value)


def number(value: float) -> str:
    """Write a symbol's value, whole numbers without a point."""
    return str(int(value)) if value == value // 1 else repr(value)


def sizes_text(sizes: Iterable[str]) -> str:
    """Write sizes as a tuple, with the comma that one size alone needs."""
    listed = list(sizes)
    return f"({','.join(listed)}{',' if len(listed) == 1 else ''})"


def _symbol(symbol: Symbol) -> list[str]:
    words = f"{symbol.name}={number(symbol.value)}"
    if (symbol.low, symbol.high) != default_range(symbol.value):
        words += f":{number(symbol.low)}..{number(symbol.high)}"
    return [words, f"{symbol.name}%{symbol.multiple}"] if symbol.multiple > 1 else [words]


def _argument(kernel: Kernel, argument: Argument, options: tuple[str, ...]) -> list[str]:
    if argument.role == "scalar":
        return [] if argument.extent == argument.name else [f"{argument.name}={argument.extent}"]
    parameter = next(p for p in kernel.parameters if p.name == argument.name)
    implied = parameter.const and argument.role == "in" and not argument.fold
    role = "" if implied else f"{argument.role}{':' + argument.fold if argument.fold else ''} "
    span = f"{{{argument.low}..{argument.high}}}" if argument.low or argument.high else ""
    kind, extent = str(argument.dtype), argument.extent
    declared = elements.element(parameter.type_name, kernel.source, options)
    if (declared[1] if declared else 1) != argument.lanes:
        kind += f"x{argument.lanes}"
        whole = expression.parse(extent)
        extent = expression.text(expression.Binary("//", whole, expression.Number(argument.lanes)))
    return [f"{argument.name}={role}{kind}[{extent}]{span}"]


def _wrapped(words: list[str]) -> Iterator[str]:
    line = "// mb:"
    for word in words:
        if len(line) + 1 + len(word) > _WIDTH and line != "// mb:":
            yield line
            line = "// mb:"
        line += f" {word}"
    yield line


def _own_lines(kernel: Kernel) -> list[re.Match[str]]:
    """Walk up from the kernel over lines that are comments, and keep those that are ours."""
    found: list[re.Match[str]] = []
    end = kernel.source.rfind("\n", 0, kernel.start) + 1
    while end > 0:
        start = kernel.source.rfind("\n", 0, end - 1) + 1
        line = kernel.source[start : end - 1].strip()
        if not line.startswith(("//", "/*", "*")) and not line.endswith("*/"):
            break
        ours = _LINE.match(kernel.source, start)
        if ours and not ours.group("file"):
            found.insert(0, ours)
        end = start
    return found


def _file_lines(kernel: Kernel) -> list[re.Match[str]]:
    return [m for m in _LINE.finditer(kernel.source) if m.group("file")] if "mb:" in kernel.source else []


def _items(source: str, line: re.Match[str]) -> Iterator[Item]:
    at, end = line.start("items"), line.end("items")
    while source[at:end].strip():
        key = _KEY.match(source, at, end)
        if not key:
            where = source.count("\n", 0, at) + 1
            raise FragmentError(
                f"line {where}: did not expect `{source[at:end].strip()}`; write items as name=value"
            )
        stop = _value_end(source, key.end(), end)
        yield Item(key["key"], key["sign"], source[key.end() : stop].rstrip(), key.end(), stop)
        at = stop


def _value_end(source: str, start: int, end: int) -> int:
    """Find where a value ends: before white space and the next item, outside brackets and quotes."""
    depth, quote, at = 0, "", start
    while at < end:
        c = source[at]
        if quote:
            at += c == "\\"
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c.isspace() and depth <= 0 and _NEXT.match(source, at, end):
            return at
        at += 1
    return end


def _fragment(kernel: Kernel, listed: list[Item]) -> Fragment:
    fragment = Fragment("comment")
    for item in listed:
        try:
            fragment = add(fragment, item.key, item.value, item.sign)
        except FragmentError as error:
            raise FragmentError(f"{place(kernel, item.start)}: {error}") from error
    return fragment
