"""The part of C's preprocessor that kernels use.

A macro that is one number stays a name in the text, so that what is printed later can keep the user's name
for it; every other macro is expanded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"[A-Za-z_]\w*|\.?\d(?:[eEpP][-+]|[\w.])*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|\s+|.", re.DOTALL
)
_COMMENT = re.compile(r"//(?:\\\n|[^\n])*|/\*.*?\*/", re.DOTALL)
_NUMBER = re.compile(
    r"\(*\s*-?\s*\(*\s*-?(?:0[xX][\da-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)[uUlLfFhH]*\s*\)*"
)
_DEFINE = re.compile(r"([A-Za-z_]\w*)(\(([^()]*)\))?\s*(.*)", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEEPEST = 40


class Unknown(Exception):
    """A directive that cannot be decided here; the message names it."""


@dataclass(frozen=True, slots=True)
class Macro:
    """A definition; ``parameters`` is None for one that takes none."""

    parameters: tuple[str, ...] | None
    body: str

    @property
    def number(self) -> bool:
        """Whether it is one number, perhaps in parentheses or negative."""
        return self.parameters is None and bool(_NUMBER.fullmatch(self.body.strip()))


@dataclass(frozen=True, slots=True)
class Expanded:
    """A source without directives, comments and macros.

    Attributes:
        text: The source; its offsets are its own.
        numbers: Text of each macro that is one number, and stands in ``text`` by its name.
    """

    text: str
    numbers: Mapping[str, str]


def from_options(options: Iterable[str]) -> dict[str, Macro]:
    """Read the ``-D`` options of a compiler's command line."""
    found: dict[str, Macro] = {}
    pending = False
    for option in options:
        text = option if pending else option.removeprefix("-D") if option.startswith("-D") else ""
        pending = option == "-D"
        if text:
            name, given, body = text.strip().strip("\"'").partition("=")
            found[name] = Macro(None, body if given else "1")
    return found


def expand(source: str, macros: Mapping[str, Macro], truth: Callable[[str], bool]) -> Expanded:
    """Carry out the directives of a source.

    Args:
        source: The translation unit.
        macros: Definitions from outside, which take precedence over guarded defaults as in C.
        truth: Decides the expanded condition of an ``#if``; may raise Unknown.

    Raises:
        Unknown: A condition could not be decided.
    """
    state = _State(dict(macros))
    lines = (
        _COMMENT.sub(lambda m: "\n" * m.group().count("\n") or " ", source).replace("\\\n", " ").split("\n")
    )
    kept: list[str] = []
    chunk: list[str] = []
    for line in [*lines, "#"]:
        if not line.lstrip().startswith("#"):
            chunk.append(line if state.active else "")
            continue
        kept.append(_replace("\n".join(chunk) + "\n", state.macros))
        chunk.clear()
        _directive(line.lstrip()[1:].strip(), state, truth)
    return Expanded("".join(kept), {n: m.body.strip() for n, m in state.macros.items() if m.number})


@dataclass(slots=True)
class _State:
    macros: dict[str, Macro]
    branches: list[tuple[bool, bool]] = field(default_factory=list)  # (taken now, some branch taken already)

    @property
    def active(self) -> bool:
        return all(now for now, _ in self.branches)


def _directive(text: str, state: _State, truth: Callable[[str], bool]) -> None:
    name = _WORD.match(text)
    word, rest = (name.group(), text[name.end() :].strip()) if name else ("", "")
    match word:
        case "ifdef" | "ifndef":
            holds = state.active and ((rest.split()[0] in state.macros) == (word == "ifdef"))
            state.branches.append((holds, holds))
        case "if":
            holds = state.active and _decide(rest, state, truth)
            state.branches.append((holds, holds))
        case "elif" | "else" if state.branches:
            _, done = state.branches.pop()
            holds = not done and state.active and (word == "else" or _decide(rest, state, truth))
            state.branches.append((holds, done or holds))
        case "endif" if state.branches:
            state.branches.pop()
        case "define" if state.active:
            if found := _DEFINE.match(rest):
                listed = found.group(3)
                names = (
                    None
                    if found.group(2) is None
                    else tuple(p.strip() for p in listed.split(",") if p.strip())
                )
                state.macros[found.group(1)] = Macro(names, found.group(4).strip())
        case "undef" if state.active:
            state.macros.pop(rest, None)
        case _:
            pass


def _decide(text: str, state: _State, truth: Callable[[str], bool]) -> bool:
    known = re.sub(
        r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))",
        lambda m: str(int((m.group(1) or m.group(2)) in state.macros)),
        text,
    )
    plain = _replace(known, state.macros)
    return truth(
        _WORD.sub(lambda m: state.macros[m.group()].body if m.group() in state.macros else "0", plain)
    )


def _replace(text: str, macros: Mapping[str, Macro], hidden: frozenset[str] = frozenset()) -> str:
    if not macros or len(hidden) > _DEEPEST:
        return text
    tokens = _TOKEN.findall(text)
    out: list[str] = []
    position = 0
    while position < len(tokens):
        token = tokens[position]
        position += 1
        macro = macros.get(token) if token not in hidden else None
        if macro is None or macro.number or "#" in macro.body:
            out.append(token)
            continue
        if macro.parameters is None:
            out.append(_replace(macro.body, macros, hidden | {token}))
            continue
        arguments, after = _arguments(tokens, position)
        if arguments is None or len(arguments) != max(len(macro.parameters), 1):
            out.append(token)
            continue
        position = after
        given = dict(
            zip(macro.parameters, (_replace(a.strip(), macros, hidden) for a in arguments), strict=False)
        )
        body = "".join(given.get(t, t) for t in _TOKEN.findall(macro.body))
        out.append(_replace(body, macros, hidden | {token}))
    return "".join(out)


def _arguments(tokens: list[str], position: int) -> tuple[list[str] | None, int]:
    """Split the argument list that begins at ``position``; None where there is none."""
    while position < len(tokens) and tokens[position].isspace():
        position += 1
    if position == len(tokens) or tokens[position] != "(":
        return None, position
    parts = [""]
    for here, depth in _depths(tokens, position):
        token = tokens[here]
        if depth == 0:
            return parts, here + 1
        if depth == 1 and token == ",":
            parts.append("")
        elif here > position:
            parts[-1] += token
    return None, position


def _depths(tokens: list[str], position: int) -> Iterator[tuple[int, int]]:
    """Give each token's index with the number of brackets open after it."""
    depth = 0
    for here in range(position, len(tokens)):
        depth += (tokens[here] in "([{") - (tokens[here] in ")]}")
        yield here, depth
