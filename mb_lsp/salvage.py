"""What a job that was cancelled had already verified, with the diffs that it had no time to write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from mb_agent import events
from mb_agent.diff import unified
from mb_lsp.shelf import Log
from mb_targets import registry
from mb_targets.model import NotApplicable


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
            text = unified(edits, request.path, request.text)
            found.append(msgspec.structs.replace(offer, diff=offer.diff or text))
    return tuple(found)
