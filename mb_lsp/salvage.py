"""What a job that was cancelled or killed had already verified."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from mb_agent import events
from mb_lsp.write import edited
from mb_targets import registry
from mb_targets.model import DocumentEdits, LaunchSpec, NotApplicable

MINIMUM_GAIN = 1.03


def offers(request: events.Request, log: Sequence[events.Event]) -> tuple[events.Offer, ...]:
    """Give the best fully verified variants in a job's log, as the job itself would have offered them."""
    launch = next((e.launch for e in log if isinstance(e, events.Started)), None)
    gains = [e for e in log if isinstance(e, events.Tried) and e.outcome.gain(MINIMUM_GAIN)]
    gains.sort(key=_value, reverse=True)
    found: list[events.Offer] = []
    for changes in (False, True):
        same_kind = [g for g in gains if (g.variant.launch is not None) == changes]
        offered = (_offer(request, launch, g) for g in same_kind) if launch is not None else iter(())
        found += [o for o in offered if o is not None][:1]
    return tuple(sorted(found, key=lambda o: o.measurement.speedup.value, reverse=True))


def diff(documents: Sequence[DocumentEdits], texts: dict[str, str]) -> str:
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


def _value(tried: events.Tried) -> float:
    return tried.outcome.total.speedup.value if tried.outcome.total else 0.0


def _offer(request: events.Request, launch: LaunchSpec, tried: events.Tried) -> events.Offer | None:
    outcome = tried.outcome
    if outcome.total is None:
        return None
    target = registry.load(request.kernel.target)
    edits = target.patch(request.kernel, launch, tried.variant, Path(request.path), request.text)
    if isinstance(edits, NotApplicable):
        return None
    return events.Offer(
        variant=tried.variant,
        verdict=outcome.verdict,
        measurement=outcome.total,
        changes_launch=tried.variant.launch is not None,
        diff=diff(edits, {request.path: request.text}),
        evidence="",
    )
