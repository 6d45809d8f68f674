"""What is shown of a kernel: the lens's title, the hover's table, the hint. Pure: values in, text out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from mb_agent.events import Failed, Finished, Offer
from mb_kb.views import Attempt, KernelPast, SimilarKernel
from mb_lsp.shelf import Job
from mb_lsp.standing import Standing
from mb_targets.outcome import Speedup

LENS_CHARACTERS = 90


@dataclass(frozen=True, slots=True)
class Recalled:
    """What the knowledge base says of one kernel.

    Attributes:
        past: This very kernel's past.
        similar: Kernels that look alike, the most similar first.
    """

    past: KernelPast | None = None
    similar: tuple[SimilarKernel, ...] = ()


@dataclass(frozen=True, slots=True)
class Lens:
    """A lens's title and the name of the command that a click runs."""

    title: str
    command: str


def lens(standing: Standing, memory: Recalled, trusted: bool) -> Lens:
    """Say in one line where a kernel stands and what a click does."""
    job = standing.job
    if job is None:
        return _optimize_lens(_history(memory), trusted)
    match standing.kind:
        case "running":
            return Lens(f"Optimizing {running(job)} | Cancel", "cancel")
        case "ready":
            return Lens(f"Verified {times(job.log.offers[0])}: show diff", "showDiff")
        case "applied":
            gain = times(job.log.offers[standing.offer])
            return Lens(f"Applied, verified {gain}: show evidence", "showEvidence")
        case "interrupted":
            best = f" | best {job.log.best.value:.2f}x" if job.log.best else ""
            return Lens(f"Resume the interrupted search{best}", "resume")
        case "stale":
            older = "with another launch" if standing.relaunched else "for an older text"
            return _optimize_lens([f"verified {times(job.log.offers[0])} {older}"], trusted)
        case "failed" if isinstance(job.log.end, Failed):
            return _optimize_lens([f"last try: {job.log.end.message}"], trusted)
    tried = job.log.end.tried if isinstance(job.log.end, Finished) else 0
    return _optimize_lens([f"no faster variant in {tried} tried" if tried else "nothing was tried"], trusted)


def hover(name: str, standing: Standing, memory: Recalled) -> str | None:
    """Give the hover's markdown, None when there is nothing to say."""
    parts = [_standing_words(name, standing)]
    if memory.past is not None:
        parts.append(f"**Past outcomes of `{name}`** ({_counts(memory.past)})\n\n" + _past_table(memory.past))
    if memory.similar:
        parts.append("**Similar kernels**\n\n" + _similar_table(memory.similar))
    said = [part for part in parts if part]
    return "\n\n".join(said) if said else None


def hint(name: str, standing: Standing) -> str:
    """Give the text of the mark on a kernel, empty for none."""
    job = standing.job
    if job is None:
        return ""
    if standing.kind == "ready":
        return f"kernel `{name}`: verified {times(job.log.offers[0])} available"
    if standing.kind == "failed" and isinstance(job.log.end, Failed) and job.log.end.cause == "input":
        return f"kernel `{name}` was not optimized: {job.log.end.message}"
    return ""


def outcome_words(job: Job) -> str:
    """Say how a job ended, in one sentence for a person."""
    log, name = job.log, job.name
    if isinstance(log.end, Failed) and not log.offers:
        return f"`{name}` was not optimized: {log.end.message}"
    if log.offers:
        cut = log.end.message if isinstance(log.end, Failed) else "" if log.end else "cancelled"
        how = f"{cut}; the best so far was kept: " if cut else ""
        best = log.offers[0].measurement
        clock = "device time" if best.clock == "event" else "CPU time"
        return (
            f"{how}`{name}` verified {times(log.offers[0])} faster {_interval(best.speedup)} by {clock} on"
            f' {best.device}; see the code actions "Show diff" and "Apply optimized"{_why(log.end)}'
        )
    if isinstance(log.end, Finished):
        if not log.end.tried:
            return f"`{name}` was not optimized: {log.end.reason}"
        return f"no faster variant of `{name}` in {log.end.tried} tried: {log.end.reason}"
    return f"the optimization of `{name}` was cancelled"


def _interval(speedup: Speedup) -> str:
    return str(speedup).partition(" ")[2]


def _why(end: Finished | Failed | None) -> str:
    """Give the reason that a search ended for, which also tells what could not be remembered."""
    return f" ({end.reason})" if isinstance(end, Finished) and end.reason else ""


def running(job: Job) -> str:
    """Say how far a job is, for a lens."""
    share = int(100 * job.log.progress.share) if job.log.progress else 0
    best = f", best {job.log.best.value:.1f}x" if job.log.best else ""
    return f"{share}%{best}"


def times(offer: Offer) -> str:
    """Write an offer's speed-up: ``2.31x``."""
    return f"{offer.measurement.speedup.value:.2f}x"


def verified(job: Job) -> str:
    """Say how well a job's offers are verified: a search that was cut short had no final round."""
    return "verified" if job.final else "verified, not finally re-measured"


def _optimize_lens(notes: Sequence[str], trusted: bool) -> Lens:
    word = "Optimize" if trusted else "Trust this workspace and optimize"
    title = " | ".join([word, *notes])
    if len(title) > LENS_CHARACTERS:
        title = title[: LENS_CHARACTERS - 1].rstrip() + "…"
    return Lens(title, "optimize" if trusted else "trust")


def _history(memory: Recalled) -> list[str]:
    past = memory.past
    if past is None:
        return []
    notes = [f"{past.count} past outcome{'s' if past.count != 1 else ''}"]
    gains = [a for a in past.best if a.speedup is not None]
    if gains:
        best = max(gains, key=lambda attempt: attempt.speedup.value if attempt.speedup else 0.0)
        notes.append(f"best {best.speedup.value:.1f}x on {best.device}" if best.speedup else "")
    return notes


def _standing_words(name: str, standing: Standing) -> str:
    job = standing.job
    if job is None:
        return ""
    best = str(job.log.offers[0].measurement.speedup) if job.log.offers else ""
    match standing.kind:
        case "running":
            return f"Optimizing `{name}`: {running(job)}."
        case "ready":
            cut = "" if job.final else " The search was cut short, so it was not measured again at the end."
            return f"A variant of this very text was verified and measured: **{best}**.{cut}"
        case "applied":
            offer = job.log.offers[standing.offer]
            return f"This text is a verified variant: **{offer.measurement.speedup}**."
        case "stale" if standing.relaunched:
            return f"A variant was verified with another launch: {best}. This launch was not measured."
        case "stale":
            return f"A variant was verified for an older text: {best}. This text was not measured."
        case "interrupted":
            return f"The search for `{name}` was interrupted; it can be resumed."
        case "failed" if isinstance(job.log.end, Failed):
            return f"Not optimized: {job.log.end.message}"
    if isinstance(job.log.end, Finished) and not job.log.end.tried:
        return f"Not optimized: {job.log.end.reason}."
    return f"No faster variant of `{name}` was found."


def _counts(past: KernelPast) -> str:
    words = [f"{past.count} tried", f"{past.gains} verified gains", f"{past.refused} refused"]
    if past.failures:
        words.append("mostly by " + ", ".join(check for check, _ in past.failures[:2]))
    return ", ".join(words)


def _past_table(past: KernelPast) -> str:
    attempts = list(past.best)
    attempts += [attempt for attempt in past.newest if attempt not in attempts]
    rows = ["| date | change | result | device |", "|---|---|---|---|"]
    rows += [_row(_date(a), f"`{a.chain or 'as it is'}`", _result(a), a.device) for a in attempts]
    return "\n".join(rows)


def _similar_table(similar: Sequence[SimilarKernel]) -> str:
    rows = ["| kernel | alike | best change | result | device |", "|---|---|---|---|---|"]
    for each in similar:
        attempt = next(iter((*each.past.best, *each.past.newest)), None)
        if attempt is not None:
            alike = f"{100 * each.similarity:.0f} %"
            change = f"`{attempt.chain or 'as it is'}`"
            rows.append(_row(f"`{each.past.kernel}`", alike, change, _result(attempt), attempt.device))
    return "\n".join(rows)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _date(attempt: Attempt) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(attempt.created))


def _result(attempt: Attempt) -> str:
    if attempt.failure:
        return f"refused: {attempt.failure}"
    if attempt.speedup is None:
        return "not timed"
    text = str(attempt.speedup)
    return f"**{text}**" if attempt.gain else f"{text}, no verified gain"
