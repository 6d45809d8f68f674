"""Do to a kernel's text what the preprocessor would, so that what it computes can be read off its tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from mb_targets import expression
from mb_targets.expression import ExpressionError
from mb_targets.model import Kernel
from mb_targets.opencl.tokens import Macro, blank, closing, macros, split, without_comments

_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_CONDITION = re.compile(r"[ \t]*#[ \t]*(ifdef|ifndef|if|elif|else|endif)\b(.*)")
_DEFINED = re.compile(r"(!\s*)?defined\s*\(?\s*(\w+)\s*\)?|(!\s*)?(\w+)")
_DEFINE_OPTION = re.compile(r"-D\s*(\w+)(?:=(.*))?")
_DEEPEST = 8
_LONGEST = 1 << 20


def defined(source: str, options: Iterable[str] = ()) -> dict[str, Macro]:
    """Give the macros that a source and its compiler options define."""
    known = dict(macros(source))
    for option in options:
        found = _DEFINE_OPTION.fullmatch(option)
        if found:
            known[found[1]] = Macro(found[1], None, found[2] if found[2] is not None else "1")
    return known


def expanded(kernel: Kernel, options: Iterable[str] = ()) -> str:
    """Give the kernel's text without comments and inactive branches, macros expanded."""
    known = defined(kernel.source, options)
    text = blank(active(without_comments(kernel.text), known))
    bodies = {n: m for n, m in known.items() if m.body}
    for _ in range(_DEEPEST):
        after = _once(text, bodies)
        if after == text or len(after) > _LONGEST:
            return text
        text = after
    return text


def active(text: str, known: Mapping[str, Macro]) -> str:
    """Put spaces in place of branches that are not compiled; a condition nobody can tell counts as true."""
    lines = text.splitlines(keepends=True)
    taken: list[bool] = []
    now: list[bool] = []
    for i, line in enumerate(lines):
        found = _CONDITION.match(line)
        if not found:
            if not all(now):
                lines[i] = re.sub(r"[^\r\n]", " ", line)
            continue
        word = found[1]
        if word in ("ifdef", "ifndef", "if"):
            now.append(_holds(word, found[2].strip(), known))
            taken.append(now[-1])
        elif word == "endif" and now:
            now.pop()
            taken.pop()
        elif now:
            now[-1] = not taken[-1] and (word == "else" or _holds("if", found[2].strip(), known))
            taken[-1] = taken[-1] or now[-1]
    return "".join(lines)


def _holds(word: str, condition: str, known: Mapping[str, Macro]) -> bool:
    if word in ("ifdef", "ifndef"):
        return (condition in known) == (word == "ifdef")
    found = _DEFINED.fullmatch(condition)
    if found and found[2]:
        return (found[2] in known) != bool(found[1])
    try:
        numbers = {n: expression.evaluate(m.body, {}) for n, m in known.items() if m.body.isdigit()}
        if found and found[4]:
            return bool(numbers.get(found[4], 0) if not found[4].isdigit() else int(found[4])) != bool(
                found[3]
            )
        return bool(expression.evaluate(condition, numbers))
    except ExpressionError:
        return True


def _once(text: str, known: Mapping[str, Macro]) -> str:
    parts: list[str] = []
    at = 0
    for word in _WORD.finditer(text):
        macro = known.get(word.group())
        if macro is None or word.start() < at:
            continue
        end, body = _replacement(text, word.end(), macro)
        if body is None:
            continue
        parts += [text[at : word.start()], body]
        at = end
    return "".join([*parts, text[at:]])


def _replacement(text: str, at: int, macro: Macro) -> tuple[int, str | None]:
    """Give where a use of a macro ends and what it stands for; None for one without its arguments."""
    if macro.parameters is None:
        return at, macro.body
    opened = re.compile(r"\s*\(").match(text, at)
    end = closing(text, opened.end() - 1) if opened else -1
    if opened is None or end < 0:
        return at, None
    passed = split(text[opened.end() : end])
    if len(passed) != len(macro.parameters):
        return at, None
    values = dict(zip(macro.parameters, passed, strict=True))
    return end + 1, _WORD.sub(lambda w: values.get(w.group(), w.group()), macro.body)
