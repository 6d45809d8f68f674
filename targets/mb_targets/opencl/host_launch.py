"""Read from host code how a kernel is launched: a suggestion that a person confirms."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Mapping, Sequence

from mb_targets import expression
from mb_targets.expression import Expression, ExpressionError
from mb_targets.model import Kernel
from mb_targets.opencl.fragment import Fragment, SymbolPart
from mb_targets.opencl.sites import Site, Sizes
from mb_targets.opencl.tokens import without_comments

_WRAPPED = re.compile(
    r"(?:np|numpy)\.u?int\d+\((.*)\)|(?:np|numpy)\.float\d+\((.*)\)|\(\s*(?:size_t|cl_\w+)\s*\)\s*(.*)"
)
_MOST = 1 << 40


def read(kernel: Kernel, sites: Sequence[Site]) -> Fragment | None:
    """Read the first launch that can be understood; None where there is none.

    The sizes are written over the kernel's scalar parameters where the host passes them, else over the host's
    own names; each name whose value the host states is a symbol of that value.
    """
    for site in sites:
        made = _fragment(kernel, site)
        if made is not None:
            return made
    return None


def _fragment(kernel: Kernel, site: Site) -> Fragment | None:
    if site.reason or site.global_size is None or site.local_size is None:
        return None
    code = site.text if site.language == "python" else without_comments(site.text)
    parameters = {i: p.name for i, p in enumerate(kernel.parameters) if p.space == "value"}
    passed = {parameters[i]: _bare(a) for i, a in site.arguments.items() if i in parameters}
    values = {name: v for name, host in passed.items() if (v := number(host, code)) is not None}
    names = _names(passed, values, code)
    sizes, local = _sizes(site.global_size, names), _sizes(site.local_size, names)
    if not sizes or local is None:
        return None
    for name in {n for text in (*sizes, *local) for n in expression.names(text)} - set(parameters.values()):
        value = number(name, code)
        if value is None:
            return None
        values[name] = value
    symbols = {n: SymbolPart(v, origin="host code") for n, v in values.items()}
    return Fragment("host code", tuple(sizes), tuple(local), _options(site), symbols=symbols)


def _names(passed: Mapping[str, str], values: Mapping[str, float], code: str) -> dict[str, Expression]:
    """Say which parameter a name or number of the host is passed for, its own definition followed once."""
    known: dict[str, Expression] = {}
    for name, host in passed.items():
        for text in (str(values.get(name, "")), *_definitions(host, code), host):
            if text.isidentifier() or (text.isdigit() and list(values.values()).count(values[name]) == 1):
                known[text] = expression.Name(name)
    return known


def _definitions(name: str, code: str) -> set[str]:
    """Give what a name is defined or set to anywhere in a host program."""
    if not name.isidentifier():
        return set()
    pattern = rf"^[ \t]*#[ \t]*define[ \t]+{name}[ \t]+([^\n]+)|(?<![\w.\]])\b{name}\s*=(?!=)\s*([^;,\n]+)"
    return {(a or b).partition("#")[0].strip() for a, b in re.findall(pattern, code, re.MULTILINE)}


def number(text: str, code: str, depth: int = 0) -> float | None:
    """Work out a number that a host program writes, following names it gives a constant to."""
    try:
        tree = expression.parse(_shifts(_bare(text)))
    except ExpressionError:
        return None
    values: dict[str, float] = {}
    for name in expression.names(tree):
        known = _constant(name, code, depth)
        if known is None:
            return None
        values[name] = known
    try:
        value = expression.evaluate(tree, values)
    except ExpressionError:
        return None
    return value if abs(value) < _MOST else None


def constant(text: str, code: str) -> float | None:
    """Work out a number as ``number`` does, but only from names that nothing could give another value."""
    value = number(text, code)
    reached: set[str] = set()
    texts = [text]
    while texts and value is not None:
        for name in expression.names(_shifts(_bare(texts.pop()))):
            if name not in reached:
                reached.add(name)
                texts += _definitions(name, code)
    return value if all(_is_fixed(name, code) for name in reached) else None


def _is_fixed(name: str, code: str) -> bool:
    """Tell whether a name is never a parameter, a loop's variable, stepped, or filled in by address."""
    ways = (
        rf"(?:\+\+|--)\s*{name}\b|\b{name}\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>|//)=)",
        rf"\bdef\s+\w+\s*\([^)]*\b{name}\b|\blambda\b[^:\n]*\b{name}\b|\bfor\b[^:;\n]*\b{name}\b[^:;\n]*(?:\bin\b|:)",
        rf"\b(?!return\b)[A-Za-z_]\w*[\s*&]+{name}\s*[,)]",
        rf"\b(?!cl[A-Z])\w+\s*\((?:[^()]*,)?\s*&\s*{name}\b|>>\s*{name}\b",
    )
    return not any(re.search(way, code) for way in ways)


def _constant(name: str, code: str, depth: int) -> float | None:
    """Give the value of ``#define NAME 4096`` or ``name = 1 << 20``, where there is just one such."""
    if depth > 4:
        return None
    found = _definitions(name, code)
    return number(found.pop(), code, depth + 1) if len(found) == 1 else None


def _bare(text: str) -> str:
    """Take off casts and wrappers: ``np.int32(n)`` is ``n``."""
    found = _WRAPPED.fullmatch(text.strip())
    inner = next((g for g in found.groups() if g is not None), text) if found else text
    return re.sub(r"\b(\d+(?:\.\d*)?)[uUlLfF]+\b", r"\1", inner.strip())


def _shifts(text: str) -> str:
    return re.sub(r"\b(\d+)\s*<<\s*(\d+)\b", lambda m: str(int(m[1]) << min(40, int(m[2]))), text)


def _sizes(sizes: Sizes, names: Mapping[str, Expression]) -> list[str] | None:
    """Write the sizes as expressions; None where one is none of ours."""
    if sizes.shared and not sizes.elements:
        return None
    made: list[str] = []
    for element in sizes.elements:
        text = _shifts(_bare(element.text))
        try:
            tree = names[text] if text in names else expression.substitute(expression.parse(text), names)
        except ExpressionError:
            return None
        made.append(expression.text(tree))
    return made


def _options(site: Site) -> tuple[str, ...] | None:
    """Read build options that are written out as text."""
    if site.options is None:
        return None
    text = site.options.text.strip().removeprefix("options=")
    try:
        value = ast.literal_eval(text) if text else ()
        words = value.split() if isinstance(value, str) else [str(v) for v in value]
        return tuple(w for word in words for w in shlex.split(word)) or None
    except (ValueError, SyntaxError, TypeError):
        return None
