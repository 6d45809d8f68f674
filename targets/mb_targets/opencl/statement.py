"""Declare variables in front of the statement that launches a kernel, in C++."""

from __future__ import annotations

import re

from mb_targets.model import TextEdit
from mb_targets.opencl.sites import Site
from mb_targets.opencl.tokens import closing, without_comments

_BRANCH = re.compile(r"(?:else|do)\b\s*|(?:if\s+constexpr|if|for|while|switch)\s*(?=\()")
_LABEL = re.compile(r"(?:case\b[^:;?]*|[A-Za-z_]\w*)\s*:(?!:)\s*")
_BEFORE_CALL = re.compile(r"[\s\w:.\->\[\]*&<>=,(!]*")


def declared(site: Site, variables: list[str]) -> list[TextEdit] | str:
    """Put declarations in front of a launch's statement; what is one branch by itself gets braces.

    Returns:
        The edits, or why there can be none.
    """
    text = site.text
    code = without_comments(text)
    start = _beginning(code, site.call.start)
    inner = _inside_branches(code, start)
    if inner < 0 or inner > site.call.start or not _BEFORE_CALL.fullmatch(code[inner : site.call.start]):
        return "where a variable for its sizes could be declared is not plain"
    end = "\r\n" if "\r\n" in text else "\n"
    line = text.rfind("\n", 0, inner) + 1
    indent = text[line:inner] if not text[line:inner].strip() else ""
    if inner == start:
        return [TextEdit(start, start, "".join(f"{v}{end}{indent}" for v in variables))]
    stop = code.find(";", site.call.end)
    if stop < 0 or re.search(r"[{}]", code[site.call.end : stop]):
        return "where its statement ends could not be read"
    return [
        TextEdit(inner, inner, "{ " + "".join(f"{v} " for v in variables)),
        TextEdit(stop + 1, stop + 1, " }"),
    ]


def _beginning(code: str, at: int) -> int:
    """Find where the statement that holds a place begins."""
    depth = 0
    for i in range(at - 1, -1, -1):
        if code[i] in ")]":
            depth += 1
        elif code[i] in "([":
            depth -= 1
        elif code[i] in ";{}" and depth <= 0:
            return i + 1 + len(code[i + 1 :]) - len(code[i + 1 :].lstrip())
    return 0


def _inside_branches(code: str, at: int) -> int:
    """Skip ``if (...)``, ``else``, labels and the like; -1 where that is not plain."""
    while True:
        found = _BRANCH.match(code, at)
        label = None if found else _LABEL.match(code, at)
        if label:
            at = label.end()
        elif found and code.startswith("(", found.end()):
            end = closing(code, found.end())
            if end < 0:
                return -1
            at = end + 1 + len(code[end + 1 :]) - len(code[end + 1 :].lstrip())
        elif found:
            at = found.end()
        else:
            return at
