"""Edit a launch in a host program so that it launches a variant."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from mb_targets import expression
from mb_targets.expression import Expression, ExpressionError, Name
from mb_targets.model import LaunchChange, NotApplicable, TextEdit
from mb_targets.opencl import host_launch
from mb_targets.opencl.sites import Site, Sizes, Span
from mb_targets.opencl.statement import declared
from mb_targets.opencl.tokens import without_comments

_ATOM = re.compile(r"[A-Za-z_][\w.]*(?:\[[\w]+\])*|\d+")
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')


def relaunched(
    site: Site, change: LaunchChange | None, options: tuple[str, ...], label: str, promised: Sequence[int]
) -> list[TextEdit] | NotApplicable:
    """Give the edits of a host program that make a launch the variant's.

    Args:
        site: The launch.
        change: How the variant's NDRange follows from the original's; None keeps it.
        options: Compiler options that the variant adds.
        label: Begins the names of variables that have to be declared; no other site has the same.
        promised: What the launch spec says each global size is a multiple of.
    """
    resized = _resized(site, change, label, promised) if change is not None else []
    rebuilt = _with_options(site, options) if options else []
    if isinstance(resized, NotApplicable):
        return resized
    return rebuilt if isinstance(rebuilt, NotApplicable) else [*resized, *rebuilt]


def needs_multiples(change: LaunchChange, where: str) -> NotApplicable:
    """Say that a launch may have sizes for which a variant is wrong."""
    multiples = ", ".join(map(str, change.multiples[: len(change.global_size)]))
    return NotApplicable(f"it needs sizes that are multiples of {multiples}, which {where} does not promise")


def _resized(
    site: Site, change: LaunchChange, label: str, promised: Sequence[int]
) -> list[TextEdit] | NotApplicable:
    if site.reason or site.global_size is None or site.local_size is None:
        return _declined(site, site.reason or "its sizes could not be read")
    dims = len(change.global_size)
    known = _elements(site.global_size, "G", dims)
    if known is None:
        return _declined(site, "it states no global size that could be changed")
    code = site.text if site.language == "python" else without_comments(site.text)
    for size, multiple, given in zip(known.values(), change.multiples, promised, strict=False):
        if given % multiple and _divisor(size, code) % multiple:
            return needs_multiples(change, f"the call at {site.place}")
    known |= _elements(site.local_size, "L", dims) or {}
    pieces = (
        (site.global_size, _written(site, change, known), f"{label}_global_size"),
        (site.local_size, [str(n) for n in change.local_size or ()], f"{label}_local_size"),
    )
    edits: list[TextEdit] = []
    variables: list[str] = []
    for sizes, values, name in pieces:
        if _needs_variable(site, sizes, values):
            variables.append(f"const size_t {name}[] = {{{', '.join(values)}}};")
            edits.append(TextEdit(sizes.whole.start, sizes.whole.end, name))
        else:
            edits += _restated(site, sizes, values)
    made = declared(site, variables) if variables else []
    return _declined(site, made) if isinstance(made, str) else [*made, *edits]


def _divisor(size: Expression, code: str) -> int:
    """Give a number that divides a size of the host for sure; 0 where the size is 0."""
    value = host_launch.constant(expression.text(size), code)
    return int(value) if value is not None and value == value // 1 else expression.divisor(size)


def _declined(site: Site, why: str) -> NotApplicable:
    return NotApplicable(
        f"it needs another launch than the one at {site.place}, which cannot be edited safely: {why}; "
        "a form that keeps the launch is offered instead"
    )


def _elements(sizes: Sizes, letter: str, dims: int) -> dict[str, Expression] | None:
    """Give the sizes as expressions whose names may be any text of the host's language."""
    if sizes.elements and not sizes.shared:
        read = [_expression(e.text) for e in sizes.elements]
        return {f"{letter}{i}": e for i, e in enumerate(read)} if len(read) == dims else None
    if not sizes.name:
        return None
    scalar = sizes.name.startswith("(&")
    members = [sizes.name[2:-1]] if scalar else [f"{sizes.name}[{i}]" for i in range(dims)]
    return {f"{letter}{i}": Name(m) for i, m in enumerate(members)}


def _expression(text: str) -> Expression:
    try:
        return expression.parse(text)
    except ExpressionError:
        return Name(text if _ATOM.fullmatch(text) else f"({text})")


def _written(site: Site, change: LaunchChange, known: dict[str, Expression]) -> list[str]:
    ones = {f"{letter}{i}": expression.Number(1) for letter in "GL" for i in range(3)}
    trees = [expression.substitute(expression.parse(s), ones | known) for s in change.global_size]
    style: expression.Style = "python" if site.language == "python" else "c"
    return [expression.text(expression.simplify(tree), style) for tree in trees]


def _needs_variable(site: Site, sizes: Sizes, values: list[str]) -> bool:
    """C++ has no compound literals: sizes written anew at a call of the C interface need a variable."""
    anew = bool(values) and (sizes.shared or len(values) != len(sizes.elements))
    return anew and site.language == "cpp" and sizes.form == "braces"


def _restated(site: Site, sizes: Sizes, values: list[str]) -> list[TextEdit]:
    """Write sizes where the old ones stand, or anew at the call; an empty list leaves them to the runtime."""
    if not values and sizes.absent:
        return []
    if values and not sizes.shared and len(values) == len(sizes.elements):
        pairs = zip(sizes.elements, values, strict=True)
        return [TextEdit(e.start, e.end, v) for e, v in pairs if e.text != v]
    listed = ", ".join(values)
    if site.language == "python":
        made = f"({listed}{',' if len(values) == 1 else ''})" if values else "None"
    elif sizes.form == "ndrange":
        made = f"cl::NDRange({listed})" if values else "cl::NullRange"
    else:
        made = f"(const size_t[]){{{listed}}}" if values else "NULL"
        if len(values) > 1:
            made = f"({made})"  # a macro around the call would split it at its commas
    return [TextEdit(sizes.whole.start, sizes.whole.end, made)]


def _with_options(site: Site, options: tuple[str, ...]) -> list[TextEdit] | NotApplicable:
    needed = f"it needs the compiler options {' '.join(options)}"
    if site.options is None:
        return NotApplicable(f"{needed}, and where {site.path.name} builds the program could not be found")
    made = (
        _python_options(site.options, options)
        if site.language == "python"
        else _c_options(site.options, options)
    )
    if made is None:
        return NotApplicable(
            f"it needs the compiler options {' '.join(options)}, and those that {site.path.name} builds with "
            "are not written out; add them there by hand"
        )
    return [made]


def _python_options(span: Span, options: tuple[str, ...]) -> TextEdit | None:
    listed = ", ".join(repr(o) for o in options).replace("'", '"')
    inner = span.text.strip()
    if not inner:
        return TextEdit(span.start, span.end, f"options=[{listed}]")
    opened = re.match(r"\s*(?:options\s*=\s*)?\[", span.text)
    if opened and span.text.rstrip().endswith("]"):
        empty = not span.text[opened.end() :].rstrip(" ]")
        at = span.start + opened.end()
        return TextEdit(at, at, listed if empty else f"{listed}, ")
    quoted = re.fullmatch(r'\s*(?:options\s*=\s*)?("(?:[^"\\]|\\.)*")\s*', span.text)
    return _appended(span.start + quoted.end(1), quoted[1], options) if quoted else None


def _c_options(span: Span, options: tuple[str, ...]) -> TextEdit | None:
    if span.text in ("NULL", "nullptr", "0"):
        return TextEdit(span.start, span.end, f'"{shlex.join(options)}"')
    return _appended(span.end, span.text, options) if _LITERAL.fullmatch(span.text) else None


def _appended(end: int, literal: str, options: tuple[str, ...]) -> TextEdit:
    return TextEdit(end - 1, end - 1, ("" if literal == '""' else " ") + shlex.join(options))
