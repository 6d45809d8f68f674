"""The evidence of a result as markdown: what was checked, what was measured, what was not."""

from __future__ import annotations

from collections.abc import Iterator

from mb_agent.events import Finished, Offer
from mb_lsp.shelf import Job
from mb_targets.model import Device
from mb_targets.outcome import Check, Measurement


def evidence(job: Job, offer: Offer) -> str:
    """Write everything that stands behind an offer."""
    return "\n".join(_lines(job, offer)) + "\n"


def _lines(job: Job, offer: Offer) -> Iterator[str]:
    yield f"# `{job.name}`: verified {offer.measurement.speedup}"
    yield ""
    if job.path:
        yield f"File: `{job.path}`  "
    yield f"Changes made: `{' '.join(str(action) for action in offer.variant.chain)}`  "
    keeps = "changes the launch (NDRange)" if offer.changes_launch else "keeps the launch"
    yield f"The variant {keeps}."
    if not job.final:
        yield from ("", "The search was cut short: this was verified, but not finally re-measured.")
    if offer.conditions:
        yield from ("", "Conditions and limits:", "", *(f"- {condition}" for condition in offer.conditions))
    yield from _measured(offer.measurement)
    started = job.log.started
    if started is not None:
        yield from _where(started.device)
        yield from ("", "## Launch", "", "```c", started.launch_comment.rstrip(), "```", "")
        yield f"Inputs and search: seed {started.seed}."
    yield from _checked(offer)
    end = job.log.end
    if isinstance(end, Finished):
        yield from (
            "",
            "## Search",
            "",
            f"{end.tried} candidates tried, {end.refused} refused; {end.reason}.",
        )
        if end.control is not None:
            yield f"Control, the original against itself: {end.control}."
    if offer.evidence:
        yield from ("", f"Record: `{offer.evidence}`")


def _measured(measurement: Measurement) -> Iterator[str]:
    clock = "device time (events)" if measurement.clock == "event" else "CPU time of the process"
    yield from ("", "## Measured", "", "| | |", "|---|---|")
    yield f"| speed-up | **{measurement.speedup}** (95 %) |"
    yield f"| clock | {clock}; {measurement.label} |"
    before, after = measurement.baseline_ns / 1e3, measurement.variant_ns / 1e3
    yield f"| original, optimized | {before:.1f} us, {after:.1f} us |"
    yield f"| ratio by events | {measurement.event_ratio:.2f} |"
    yield f"| pairs | {measurement.samples} |"
    yield f"| how | {_cell(measurement.method)} |"


def _where(device: Device) -> Iterator[str]:
    yield f"| device | {_cell(device.name)} (`{device.key}`) |"
    yield f"| driver, toolchain | {_cell(device.driver)}, {_cell(device.toolchain)} |"


def _checked(offer: Offer) -> Iterator[str]:
    verdict = offer.verdict
    yield from ("", f"## Verified (evidence level E{max(verdict.level.value, 0)}, then timed)", "")
    yield from ("| check | passed | seconds | what it saw |", "|---|---|---|---|")
    for check in verdict.checks:
        yield f"| {_cell(check.name)} | {_passed(check)} | {check.seconds:.2f} | {_cell(check.evidence)} |"
    yield from ("", f"Largest error: {verdict.error:.3g} of what is allowed. {verdict.basis}".rstrip())
    for each in verdict.unchecked:
        yield f"Not checked: {each}."


def _passed(check: Check) -> str:
    return "not made here" if check.passed is None else "yes" if check.passed else "no"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
