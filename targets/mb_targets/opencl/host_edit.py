"""Edit a launch in a host program so that it launches a variant."""

from __future__ import annotations

import re
import shlex

from mb_targets import expression
from mb_targets.expression import Expression, ExpressionError, Name
from mb_targets.model import LaunchChange, NotApplicable, TextEdit
from mb_targets.opencl.sites import Site, Sizes, Span
from mb_targets.opencl.tokens import without_comments

_ATOM = re.compile(r"[A-Za-z_][\w.]*(?:\[[\w]+\])*|\d+")
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')


def relaunched(
    site: Site, change: LaunchChange | None, options: tuple[str, ...], label: str
) -> list[TextEdit] | NotApplicable:
    """Give the edits of a host program that make a launch the variant's.

    Args:
        site: The launch.
        change: How the variant's NDRange follows from the original's; None keeps it.
        options: Compiler options that the variant adds.
        label: Begins the names of variables that have to be declared; no other site has the same.
    """
    resized = _resized(site, change, label) if change is not None else []
    rebuilt = _with_options(site, options) if options else []
    if isinstance(resized, NotApplicable):
        return resized
    return rebuilt if isinstance(rebuilt, NotApplicable) else [*resized, *rebuilt]


def _resized(site: Site, change: LaunchChange, label: str) -> list[TextEdit] | NotApplicable:
    if site.reason or site.global_size is None or site.local_size is None:
        return _declined(site, site.reason or "its sizes could not be read")
    known = _elements(site.global_size, "G", len(change.global_size))
    if known is None:
        return _declined(site, "it states no global size that could be changed")
    known |= _elements(site.local_size, "L", len(change.global_size)) or {}
    wanted = _written(site, change, known)
    return [
        *_restated(site, site.global_size, wanted, f"{label}_global_size"),
        *_restated(site, site.local_size, [str(n) for n in change.local_size or ()], f"{label}_local_size"),
    ]


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


def _restated(site: Site, sizes: Sizes, values: list[str], name: str) -> list[TextEdit]:
    """Write sizes where the old ones stand, or anew at the call; an empty list leaves them to the runtime."""
    if not values and sizes.absent:
        return []
    if values and not sizes.shared and len(values) == len(sizes.elements):
        pairs = zip(sizes.elements, values, strict=True)
        return [TextEdit(e.start, e.end, v) for e, v in pairs if e.text != v]
    listed = ", ".join(values)
    whole = sizes.whole
    if site.language == "python":
        made = f"({listed}{',' if len(values) == 1 else ''})" if values else "None"
    elif sizes.form == "ndrange":
        made = f"cl::NDRange({listed})" if values else "cl::NullRange"
    elif site.language == "c" or not values:
        made = f"(const size_t[]){{{listed}}}" if values else "NULL"
        if len(values) > 1:
            made = f"({made})"  # a macro around the call would split it at its commas
    else:
        # C++ has no compound literals: the sizes need a variable of their own.
        at, indent = _statement(site.text, site.call.start)
        declared = f"const size_t {name}[] = {{{listed}}};{_line_end(site.text)}{indent}"
        return [TextEdit(at, at, declared), TextEdit(whole.start, whole.end, name)]
    return [TextEdit(whole.start, whole.end, made)]


def _statement(text: str, at: int) -> tuple[int, str]:
    """Find where the statement that holds a place begins, and its indent."""
    depth = 0
    code = without_comments(text[:at])
    for i in range(len(code) - 1, -1, -1):
        if code[i] in ")]":
            depth += 1
        elif code[i] in "([":
            depth -= 1
        elif code[i] in ";{}" and depth <= 0:
            start = i + 1 + len(code[i + 1 :]) - len(code[i + 1 :].lstrip())
            line = text.rfind("\n", 0, start) + 1
            return start, text[line:start] if not text[line:start].strip() else ""
    return 0, ""


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


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
