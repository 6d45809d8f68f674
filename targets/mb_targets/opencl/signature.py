"""Read what stands between ``kernel`` and the body: name, attributes, parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from mb_targets.model import Parameter
from mb_targets.opencl.tokens import closing, split

_Space = Literal["value", "global", "constant", "local", "image", "sampler"]

_ATTRIBUTE = re.compile(r"__attribute__\s*(?=\()")
_CALL = re.compile(r"\b(\w+)\s*\(")
_WORD = re.compile(r"[A-Za-z_]\w*")
NOT_TYPE = frozenset(
    (
        *("const", "volatile", "restrict", "register", "static", "inline", "extern", "kernel"),
        *("global", "local", "constant", "private", "generic", "read_only", "write_only", "read_write"),
    )
)
_MACROS = re.compile(r"\s*(?:[A-Z_][A-Z0-9_]*\s*)*")


@dataclass(frozen=True, slots=True)
class Signature:
    """A kernel's header.

    Attributes:
        name: The kernel's name.
        listed: The text between the parentheses of its parameter list, comments blanked.
        attributes: The texts of its attributes.
    """

    name: str
    listed: str
    attributes: tuple[str, ...]


def signature(header: str) -> Signature | None:
    """Read a header, comments and directives blanked; None where it is none, such as a declaration."""
    bare, attributes = _take_attributes(header)
    if ";" in bare or "=" in bare:
        return None
    for found in reversed(list(_CALL.finditer(bare))):
        end = closing(bare, found.end() - 1)
        if end >= 0 and _MACROS.fullmatch(bare, end + 1) and bare[: found.start()].strip():
            return Signature(found.group(1), bare[found.end() : end], attributes)
    return None


@lru_cache(maxsize=8192)
def parameters(listed: str, lists: tuple[tuple[str, str], ...]) -> tuple[Parameter, ...]:
    """Read a parameter list.

    Args:
        listed: Its text, comments blanked.
        lists: Names and bodies of macros that hold commas: a macro may stand for several parameters.
    """
    for name, body in lists:
        if name in listed:
            listed = body.join(re.split(rf"\b{name}\b", listed))
    found = (_parameter(_take_attributes(part)[0]) for part in split(listed) if part != "void")
    return tuple(p for p in found if p)


def plain(word: str) -> str:
    """Take the underscores off a qualifier: ``__global`` is ``global``."""
    return word.strip("_") if word.startswith("__") else word


def _parameter(text: str) -> Parameter | None:
    words = [plain(w) for w in _WORD.findall(re.sub(r"\[[^\]]*\]", "", text))]
    if not words:
        return None
    kinds = [w for w in words[:-1] if w not in NOT_TYPE] if len(words) > 1 else []
    type_name = " ".join(kinds) or "int"
    pointed = text.partition("*")[0] if "*" in text else text
    return Parameter(
        name=words[-1],
        type_name=type_name,
        space=_space(words[:-1], type_name, "*" in text or "[" in text),
        const="const" in _WORD.findall(pointed) or "constant" in words[:-1],
        restrict="restrict" in words[:-1],
    )


def _space(words: list[str], type_name: str, pointer: bool) -> _Space:
    if re.match(r"image\w*_t$", type_name):
        return "image"
    if type_name == "sampler_t":
        return "sampler"
    if not pointer:
        return "value"
    if "local" in words:
        return "local"
    return "constant" if "constant" in words else "global"


def _take_attributes(text: str) -> tuple[str, tuple[str, ...]]:
    taken: list[str] = []
    found = _ATTRIBUTE.search(text)
    while found:
        end = closing(text, found.end())
        if end < 0:
            break
        taken.append(text[found.start() : end + 1])
        text = text[: found.start()] + " " * (end + 1 - found.start()) + text[end + 1 :]
        found = _ATTRIBUTE.search(text)
    return text, tuple(taken)
