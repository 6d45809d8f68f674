"""Do to a kernel's text what the preprocessor would, so that what it computes can be read off its tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from mb_targets.form.macros import from_options
from mb_targets.model import Kernel
from mb_targets.opencl.conditions import holds
from mb_targets.opencl.tokens import Macro, blank, closing, macro, split, tokens, without_comments

_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_CONDITION = re.compile(r"[ \t]*#[ \t]*(ifdef|ifndef|if|elif|else|endif)\b(.*)")
_UNDEFINE = re.compile(r"#\s*undef\s+(\w+)")
_DEEPEST = 8
_LONGEST = 1 << 20


@lru_cache(maxsize=64)
def defined(source: str, options: tuple[str, ...] = ()) -> Mapping[str, Macro]:
    """Give the macros that hold at the end of a source, its conditionals and compiler options followed."""
    known = {n: Macro(n, m.parameters, m.body) for n, m in from_options(options).items()}
    if "#" not in source:
        return known
    branches = _Branches(known)
    for token in tokens(source):
        if not token.startswith("#") or branches.directive(token) or not branches.taken:
            continue
        made, undone = macro(token), _UNDEFINE.match(token)
        if made:
            known[made.name] = made
        elif undone:
            known.pop(undone[1], None)
    return known


def expanded(kernel: Kernel, options: Iterable[str] = ()) -> str:
    """Give the kernel's text without comments and inactive branches, macros expanded."""
    known = defined(kernel.source, tuple(options))
    text = blank(active(without_comments(kernel.text), known))
    bodies = {n: m for n, m in known.items() if m.body}
    for _ in range(_DEEPEST):
        after = _once(text, bodies)
        if after == text or len(after) > _LONGEST:
            return text
        text = after
    return text


def active(text: str, known: Mapping[str, Macro]) -> str:
    """Put spaces in place of branches that are not compiled."""
    branches = _Branches(known)
    lines = text.splitlines(keepends=True)
    for i, line in enumerate(lines):
        if not branches.directive(line.strip()) and not branches.taken:
            lines[i] = re.sub(r"[^\r\n]", " ", line)
    return "".join(lines)


class _Branches:
    """Which branches of conditionals are compiled, followed directive by directive."""

    def __init__(self, known: Mapping[str, Macro]) -> None:
        self._known = known
        self._now: list[bool] = []
        self._done: list[bool] = []

    @property
    def taken(self) -> bool:
        """Whether what stands here is compiled."""
        return all(self._now)

    def directive(self, text: str) -> bool:
        """Take a line; True where it is a conditional."""
        found = _CONDITION.match(text)
        if not found:
            return False
        word, condition = found[1], found[2].strip()
        if word in ("if", "ifdef", "ifndef"):
            self._now.append(self._holds(word, condition))
            self._done.append(self._now[-1])
        elif self._now and word == "endif":
            self._now.pop()
            self._done.pop()
        elif self._now:
            self._now[-1] = not self._done[-1] and (word == "else" or self._holds("if", condition))
            self._done[-1] = self._done[-1] or self._now[-1]
        return True

    def _holds(self, word: str, condition: str) -> bool:
        if word != "if":
            return ("".join(condition.split()[:1]) in self._known) == (word == "ifdef")
        return holds(condition, self._known)


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
