"""What a job that was cancelled had already verified, with the diffs that it had no time to write."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from mb_agent import events
from mb_lsp.shelf import Log
from mb_lsp.write import edited
from mb_targets import registry
from mb_targets.model import DocumentEdits, NotApplicable


def offers(request: events.Request, log: Sequence[events.Event]) -> tuple[events.Offer, ...]:
    """Give the best fully verified variants in a job's log, as the job itself would have offered them."""
    kept = Log()
    for event in log:
        kept.absorb(event)
    if kept.started is None:
        return ()
    target = registry.load(request.kernel.target)
    found: list[events.Offer] = []
    for offer in kept.offers:
        edits = target.patch(
            request.kernel, kept.started.launch, offer.variant, Path(request.path), request.text
        )
        if not isinstance(edits, NotApplicable):
            text = unified_diff(edits, {request.path: request.text})
            found.append(msgspec.structs.replace(offer, diff=offer.diff or text))
    return tuple(found)


def unified_diff(documents: Sequence[DocumentEdits], texts: Mapping[str, str]) -> str:
    """Write edits as one unified diff; ``texts`` holds what is not to be read from disk, by path."""
    parts: list[str] = []
    for document in documents:
        before = texts.get(document.path)
        before = Path(document.path).read_bytes().decode() if before is None else before
        after = edited(before, document)
        lines = difflib.unified_diff(
            before.splitlines(keepends=True), after.splitlines(keepends=True), document.path, document.path
        )
        parts += [
            line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines
        ]
    return "".join(parts)
