"""Judge a result against what was expected, in words that the next search can use. Facts only, no model."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from mb_targets.outcome import Speedup, Verdict

Judgement = Literal[
    "refused", "slower", "no effect", "less than expected", "as expected", "more than expected"
]

# Within this factor of the expectation a gain counts as expected; a step this near 1 as no effect.
NEAR = math.log(1.25)
NO_EFFECT = math.log(1.04)


class Note(msgspec.Struct, frozen=True):
    """The textual reward of one attempt.

    Attributes:
        judgement: In one word or two.
        text: What happened against what was expected, why, and what to do about it next time.
        constraint: The condition learned from a failure, empty when there was none.
    """

    judgement: Judgement
    text: str
    constraint: str = ""


def judge(what: str, expected: float, verdict: Verdict, step: Speedup | None) -> Note:
    """Compare what was observed with what was expected.

    Args:
        what: The actions tried, as written.
        expected: The speed-up that was expected of them.
        verdict: What verification found.
        step: What they brought over its parent, None where it was not measured.
    """
    if verdict.refused or step is None:
        return _refusal(what, verdict)
    observed, hoped = math.log(step.value), math.log(max(expected, 1e-3))
    figures = f"{what}: {step.value:.2f}x [{step.low:.2f}-{step.high:.2f}] where {expected:.2f}x was expected"
    if abs(observed) <= NO_EFFECT or step.low < 1 < step.high:
        return Note("no effect", f"{figures}; it changes nothing here, prefer others")
    if observed < 0:
        return Note("slower", f"{figures}; avoid it in this state")
    if observed < hoped - NEAR:
        return Note("less than expected", f"{figures}; worth it, but expect less")
    if observed > hoped + NEAR:
        return Note("more than expected", f"{figures}; prefer it in this state")
    return Note("as expected", figures)


def _refusal(what: str, verdict: Verdict) -> Note:
    evidence = next((c.evidence for c in reversed(verdict.checks) if c.passed is False), "not measured")
    why = evidence.splitlines()[0][:200] if evidence else verdict.failure
    failure = verdict.failure or "not measured"
    return Note(
        "refused", f"{what}: refused by {failure}: {why}", _CONSTRAINTS.get(failure, f"fails {failure}")
    )


_CONSTRAINTS = {
    "build": "does not build on this device",
    "smoke": "gives wrong values in this state",
    "distributions": "gives wrong values for some inputs",
    "sizes": "gives wrong values at some sizes",
    "guard pages": "reads or writes outside a buffer",
    "inputs unchanged": "writes to an input",
    "time limit": "does not end, or is far slower",
    "launch": "cannot be launched on this device",
    "crash": "crashes on this device",
}
