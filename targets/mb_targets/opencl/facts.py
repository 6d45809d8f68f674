"""What a kernel's text shows without being parsed: ids that it asks for, memory, barriers, calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from mb_targets.expression import ExpressionError, evaluate
from mb_targets.model import Kernel
from mb_targets.opencl.expand import defined
from mb_targets.opencl.signature import plain
from mb_targets.opencl.tokens import blank, closing, macros, split, tokens

WORK_ITEM = frozenset(
    f"get_{what}" for what in ("global_id", "local_id", "group_id", "global_size", "local_size", "num_groups")
)
_REQUIRED = re.compile(r"reqd_work_group_size\s*\(")
_FUNCTION = re.compile(r"\b([A-Za-z_]\w*)\s*(?=\()")
_WORD = re.compile(r"[A-Za-z_]\w*")
_DIMS = ("0", "1", "2")
_SUFFIX = re.compile(r"\b(\d+(?:\.\d*)?)[uUlLfF]+\b")


@dataclass(frozen=True, slots=True)
class Facts:
    """What a kernel's text and the helpers it reaches show.

    Attributes:
        dims: Dimensions of the NDRange that it asks ids of, at least 1.
        calls: Functions called by name, work-item functions included.
        local_memory: Whether it has local arrays or local parameters.
        barriers: Barriers in the kernel and its helpers.
        atomics: Whether it calls an atomic function.
        images: Whether a parameter is an image or a sampler.
        required_local: Sizes of ``reqd_work_group_size``, None where there is none.
    """

    dims: int
    calls: frozenset[str]
    local_memory: bool
    barriers: int
    atomics: bool
    images: bool
    required_local: tuple[int, ...] | None


@lru_cache(maxsize=512)
def facts(kernel: Kernel) -> Facts:
    """Read the facts of a kernel."""
    found = tokens(reachable(kernel))
    calls = [a for a, b in pairwise(found) if b == "(" and a.isidentifier()]
    asked = [found[i + 2] for i, t in enumerate(found[:-2]) if t in WORK_ITEM]
    spaces = {p.space for p in kernel.parameters}
    return Facts(
        dims=1 + max((int(a) for a in asked if a in _DIMS), default=0),
        calls=frozenset(calls),
        local_memory="local" in spaces or any(plain(t) == "local" for t in found),
        barriers=sum(c in ("barrier", "work_group_barrier") for c in calls),
        atomics=any(c.startswith(("atomic_", "atom_")) for c in calls),
        images=bool(spaces & {"image", "sampler"}),
        required_local=required_local(kernel),
    )


def required_local(kernel: Kernel) -> tuple[int, ...] | None:
    """Read ``reqd_work_group_size``; None where there is none or a macro of it has no number here."""
    header = kernel.text[: kernel.text.find("{")]
    found = _REQUIRED.search(blank(header))
    if not found:
        return None
    inner = header[found.end() : closing(header, found.end() - 1)]
    try:
        return tuple(int(evaluate(part, numbers(kernel.source))) for part in split(inner))
    except ExpressionError:
        return None


@lru_cache(maxsize=64)
def numbers(source: str) -> dict[str, float]:
    """Give the macros of a source that stand for a number."""
    known: dict[str, float] = {}
    for name, found in defined(source).items():
        if found.parameters is None and found.body:
            try:
                known[name] = evaluate(_SUFFIX.sub(r"\1", found.body), known)
            except ExpressionError:
                continue
    return known


def reachable(kernel: Kernel) -> str:
    """Give the kernel's text and that of the helper functions and macros it reaches, comments blanked."""
    helpers = _helpers(kernel.source)
    parts = [blank(kernel.text)]
    seen = {kernel.name}
    for part in parts:
        if len(parts) > 200:
            break
        for word in _WORD.findall(part):
            if word in helpers and word not in seen:
                seen.add(word)
                parts.append(helpers[word])
    return "\n".join(parts)


@lru_cache(maxsize=64)
def _helpers(source: str) -> dict[str, str]:
    """Give the bodies of functions that are not kernels, and of macros, by name."""
    text = blank(source)
    found = {name: macro.body for name, macro in macros(source).items()}
    at = 0
    while call := _FUNCTION.search(text, at):
        end = closing(text, call.end())
        opened = re.compile(r"\s*\{").match(text, end + 1) if end >= 0 else None
        at = call.end() + 1
        if opened:
            stop = closing(text, opened.end() - 1)
            found[call.group(1)] = text[call.start() : stop + 1]
            at = stop + 1 if stop >= 0 else opened.end()
    return found
