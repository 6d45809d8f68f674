"""Find the kernels of a text, and after an edit only look again at the part that it can have changed.

A text is cut into blocks, each from one kernel's first character to the next kernel's. ``kernel`` is a
reserved word and functions do not nest, so it starts a block wherever it stands outside comments, strings and
directives: a missing brace in one kernel costs that kernel only. A block depends on its own text and on
nothing before it, which is what makes it reusable.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field

from mb_targets.model import Kernel, digest
from mb_targets.opencl.signature import Signature, parameters, signature
from mb_targets.opencl.tokens import (
    BLOCK_COMMENT,
    CHARACTER,
    DIRECTIVE,
    LINE_COMMENT,
    STRING,
    blank,
    macro,
    tokens,
)
from mb_targets.protocol import Outline

# Each alternative starts with a literal and stands in no group: the engine then skips ahead to one of them.
_EVENT = re.compile(
    rf"{DIRECTIVE}|{LINE_COMMENT}|{BLOCK_COMMENT}|{STRING}|{CHARACTER}|kernel\b|__kernel\b|\{{|\}}", re.DOTALL
)
_HEAD = re.compile(
    r"""\b(?:(?:__attribute__\s*\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\)
    |static|inline|extern|[A-Z_][A-Z0-9_]+(?:[ \t]*\([^()\n]*\))?)\s*)+\Z""",
    re.VERBOSE,
)
_CONDITION = re.compile(r"\s*#\s*(if|elif|else|endif)")
_WORD = re.compile(r"\w")
_LONGEST_HEAD = 300


@dataclass(frozen=True, slots=True)
class _Found:
    """A whole kernel at the start of its block: its header, its length, and the digest of its tokens."""

    signature: Signature
    length: int
    digest: str


@dataclass(frozen=True, slots=True)
class _Block:
    """A piece of the text.

    Attributes:
        length: Characters.
        keyword: Offset in the block one past the word that starts it, 0 for the text before the first kernel.
        kernel: The kernel, where it is whole.
        others: The tokens that are not the kernel's, one a line.
    """

    length: int
    keyword: int
    kernel: _Found | None
    others: str


@dataclass
class _Shape:
    """Brace depth while scanning one block, and where its kernel's body starts and ends."""

    depth: int = 0
    opened: int = -1
    closed: int = -1
    conditions: list[int] = field(default_factory=list)

    def brace(self, sign: str, at: int) -> None:
        """Count a brace; the first one opened is the body's."""
        if sign == "{":
            if self.opened < 0:
                self.opened = at
            self.depth += 1
        elif self.depth > 0:
            self.depth -= 1
            if self.depth == 0 and self.closed < 0:
                self.closed = at + 1

    def condition(self, directive: str) -> None:
        """Start each branch of a conditional at the depth of the first."""
        found = _CONDITION.match(directive)
        if not found:
            return
        if found.group(1) == "if":
            self.conditions.append(self.depth)
        elif self.conditions and found.group(1) == "endif":
            self.conditions.pop()
        elif self.conditions:
            self.depth = self.conditions[-1]


class Scan:
    """The kernels of one text of OpenCL C, kept up to date over edits; not safe to share between threads.

    Args:
        text: The text, all of it OpenCL C; host programs go through ``detect.embedded``.
        language: Language id of the document.
        offset: Where the text begins in the document.
    """

    def __init__(self, text: str, language: str = "opencl", offset: int = 0) -> None:
        self._language, self._offset = language, offset
        self._shared = ""
        self._shared_digest = digest("")
        self._lists: tuple[tuple[str, str], ...] = ()
        self._identities: dict[str, str] = {}
        self._text, self._blocks, self._starts = text, list[_Block](), list[int]()
        self._kernels: tuple[Kernel, ...] | None = None
        self._replace(text, 0, len(text), len(text))

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that are whole, in order."""
        if self._kernels is None:
            self._kernels = self._described()
        return self._kernels

    @property
    def outline(self) -> list[Outline]:
        """The same in short, several times cheaper after an edit."""
        return [
            Outline(b.kernel.signature.name, at, at + b.kernel.length, self._identity(b.kernel.digest))
            for at, b in zip(self._starts, self._blocks, strict=True)
            if b.kernel
        ]

    def update(self, text: str, start: int, old_end: int, new_end: int) -> tuple[Kernel, ...]:
        """Take over an edit.

        Args:
            text: All of the text after the edit.
            start: First character changed.
            old_end: End of the changed span in the text before.
            new_end: End of what replaced it, in ``text``.
        """
        self.follow(text, start, old_end, new_end)
        return self.kernels

    def follow(self, text: str, start: int, old_end: int, new_end: int) -> None:
        """Take over an edit as ``update`` does, without describing the kernels yet."""
        self._replace(text, start, old_end, new_end)

    def _replace(self, text: str, start: int, old_end: int, new_end: int) -> None:
        keep = self._untouched(start)
        blocks, starts = self._blocks[:keep], self._starts[:keep]
        at = self._starts[keep] if keep < len(self._starts) else 0
        keyword = self._blocks[keep].keyword if keep < len(self._blocks) else 0
        shift = len(text) - len(self._text)
        while True:
            if at >= new_end and (reused := self._reusable(at - shift, old_end)) >= 0:
                blocks += self._blocks[reused:]
                starts += [s + shift for s in self._starts[reused:]]
                break
            block, keyword = _next_block(text, at, keyword)
            blocks.append(block)
            starts.append(at)
            at += block.length
            if not keyword:
                break
        self._text, self._blocks, self._starts = text, blocks, starts
        self._share()
        self._kernels = None

    def _untouched(self, start: int) -> int:
        """Count the blocks that end, and whose end was recognised, before the edit."""
        keep = max(0, bisect_left(self._starts, start) - 1)
        while keep > 0 and self._starts[keep] + self._blocks[keep].keyword >= start:
            keep -= 1
        return keep

    def _reusable(self, at: int, old_end: int) -> int:
        index = bisect_left(self._starts, at)
        known = index > 0 and index < len(self._starts) and self._starts[index] == at
        return index if known and at >= old_end else -1

    def _share(self) -> None:
        """Digest what all kernels share, and find the macros that may stand for several parameters."""
        shared = "\n".join(b.others for b in self._blocks if b.others)
        if shared == self._shared:
            return
        self._shared, self._shared_digest = shared, digest(shared)
        self._identities.clear()
        found = (macro(line) for line in shared.split("\n") if line.startswith("#") and "," in line)
        self._lists = tuple((m.name, m.body) for m in found if m and m.parameters is None and "," in m.body)

    def _identity(self, own: str) -> str:
        known = self._identities.get(own)
        if known is None:
            known = self._identities[own] = digest(self._shared_digest, own)
        return known

    def _described(self) -> tuple[Kernel, ...]:
        return tuple(
            Kernel(
                target="opencl",
                language=self._language,
                name=b.kernel.signature.name,
                source=self._text,
                start=at,
                end=at + b.kernel.length,
                parameters=parameters(b.kernel.signature.listed, self._lists),
                identity=self._identity(b.kernel.digest),
                offset=self._offset,
            )
            for at, b in zip(self._starts, self._blocks, strict=True)
            if b.kernel
        )


def _next_block(text: str, start: int, keyword: int) -> tuple[_Block, int]:
    """Read one block; also give the next block's ``keyword``, 0 at the end of the text."""
    shape = _Shape()
    last = start + keyword
    for found in _EVENT.finditer(text, last):
        kind = text[found.start()]
        if kind in "k_":
            if found.start() and _WORD.match(text, found.start() - 1):
                continue
            head = _HEAD.search(text, max(last, found.start() - _LONGEST_HEAD), found.start())
            end = head.start() if head else found.start()
            return _block(text, start, end, keyword, shape), found.end() - end
        if kind in "{}":
            shape.brace(kind, found.start())
        elif kind == "#":
            shape.condition(found.group())
        last = found.end()
    return _block(text, start, len(text), keyword, shape), 0


def _block(text: str, start: int, end: int, keyword: int, shape: _Shape) -> _Block:
    kernel = None
    if keyword and shape.closed >= 0:
        header = signature(blank(text[start : shape.opened]))
        if header:
            own = tokens(text[start : shape.closed])
            kernel = _Found(header, shape.closed - start, digest("\n".join(own)))
    rest = shape.closed if kernel else start
    return _Block(end - start, keyword, kernel, "\n".join(tokens(text[rest:end])))
