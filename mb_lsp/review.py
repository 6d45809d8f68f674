"""From a result to edits of the text as it is now: carried over when it moved, refused when it changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from mb_agent.events import Offer
from mb_lsp.documents import Document, Placed
from mb_lsp.launches import described
from mb_lsp.shelf import Job
from mb_lsp.splice import opcodes
from mb_lsp.standing import identity_of, same_launch
from mb_targets import registry
from mb_targets.model import DocumentEdits, NotApplicable, Variant


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """Why a result cannot be applied, in one sentence; an answer, not an error."""

    reason: str


def edits(job: Job, offer: Offer, document: Document) -> Sequence[DocumentEdits] | Refusal:
    """Work out the edits that put an offer in place in a document's present text.

    The kernel is found again by name and identity; where only comments, spacing or other parts of the file
    changed since, the change is carried over line by line.

    Raises:
        OSError: The job's request cannot be read.
        msgspec.MsgspecError: It is damaged.
    """
    placed = document.find(job.name, job.identity)
    if placed is None:
        return Refusal(f"kernel `{job.name}` is no longer in this document; the result was kept")
    if placed.kernel.identity != job.identity:
        return Refusal(f"kernel `{job.name}` changed since it was measured; the result was kept, not applied")
    now = described(placed.kernel, document.path)
    if not same_launch(job, job.asked or described(job.request.kernel, document.path), now):
        return Refusal(f"kernel `{job.name}` was measured with another launch; optimize it again")
    variant = carried(job, offer, placed)
    launch = job.log.started.launch if job.log.started else job.request.launch
    if variant is None or launch is None:
        return Refusal(
            f"the text around kernel `{job.name}` changed since it was measured; optimize it again"
        )
    target = registry.load(job.target)
    result = target.patch(placed.kernel, launch, variant, path_of(document, job), document.text)
    if isinstance(result, NotApplicable):
        return Refusal(f"the result for `{job.name}` cannot be applied here: {result.reason}")
    return result


def path_of(document: Document, job: Job) -> Path:
    """Give a document's path; for unsaved text the one that its job was given."""
    return document.path or Path(job.path)


def carried(job: Job, offer: Offer, placed: Placed) -> Variant | None:
    """Carry an offer's variant over to the source as it is now; None where the change no longer fits."""
    old, now = job.request.kernel, placed.kernel
    if old.source == now.source:
        return offer.variant
    head, tail = old.source[: old.start], old.source[old.end :]
    changed = offer.variant.source
    if changed.startswith(head) and changed.endswith(tail) and len(changed) >= len(head) + len(tail):
        inner = merge(old.text, changed[len(head) : len(changed) - len(tail)], now.text)
        source = None if inner is None else now.source[: now.start] + inner + now.source[now.end :]
    else:
        source = merge(old.source, changed, now.source)
    if source is None:
        return None
    variant = dataclasses.replace(offer.variant, source=source)
    same = identity_of(job.target, variant) == identity_of(job.target, offer.variant)
    return variant if same else None


def merge(base: str, changed: str, now: str) -> str | None:
    """Make the change from ``base`` to ``changed`` in ``now``; None where its lines are no longer there."""
    if base == now:
        return changed
    old, new, current = (text.splitlines(keepends=True) for text in (base, changed, now))
    where = {
        i1 + i: j1 + i
        for tag, i1, i2, j1, _ in opcodes(old, current)
        if tag == "equal"
        for i in range(i2 - i1)
    }
    where |= {-1: -1, len(old): len(current)}
    result = list(current)
    for tag, i1, i2, j1, j2 in reversed(opcodes(old, new)):
        if tag == "equal":
            continue
        # What is replaced must be there in one piece; for an insertion, the lines on both sides.
        needed = range(i1, i2) if i1 < i2 else range(i1 - 1, i1 + 1)
        found = [where.get(i) for i in needed]
        if None in found or any(b - a != 1 for a, b in pairwise(i for i in found if i is not None)):
            return None
        start = where[i1]
        result[start : start + i2 - i1] = new[j1:j2]
    return "".join(result)
