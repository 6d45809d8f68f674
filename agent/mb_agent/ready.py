"""Build and smoke-test candidates side by side, each in its own process, before they are timed one by one.

Compiling takes longer than timing, and two compilers disturb each other less than a measurement. Nothing else
runs while a candidate is timed.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from mb_agent.choose import Choice
from mb_agent.setup import Job
from mb_agent.sizes import Sizes
from mb_agent.trial import Candidate
from mb_agent.worker import WorkerProcess
from mb_targets.model import Variant
from mb_targets.outcome import Level, Verdict

ABREAST = 2


@dataclass(frozen=True, slots=True)
class Draft:
    """A variant to be tried, and the choice it came from."""

    choice: Choice
    variant: Variant


@dataclass(frozen=True, slots=True)
class Ready:
    """What became of a draft.

    Attributes:
        candidate: It, ready to be timed; None where its verdict refuses it.
        sizes: Where it compared equal.
    """

    draft: Draft
    candidate: Candidate | None
    verdict: Verdict
    sizes: Sizes


def make_ready(job: Job, drafts: Sequence[Draft]) -> list[Ready]:
    """Screen, build and smoke-test drafts, all at once.

    Raises:
        OriginalRefused: The original no longer runs on the case that is timed.
        AgentError: A process cannot be started, or the job was stopped.
    """
    job.timed_case()  # worked out here: the threads below only read it
    sides = [job.bench.take() for _ in drafts]  # here too: the system ends a process with its thread
    if len(drafts) == 1:
        return [_prepared(job, drafts[0], sides[0])]
    with ThreadPoolExecutor(len(drafts)) as pool:
        return list(pool.map(_prepared, [job] * len(drafts), drafts, sides))


def _prepared(job: Job, draft: Draft, side: WorkerProcess) -> Ready:
    sizes = job.plan.screen
    interface = job.verifier.screen(draft.variant)
    if not interface.passed:
        job.bench.give_back(side)
        return Ready(draft, None, Verdict(Level.NONE, checks=(interface,), failure="interface"), sizes)
    candidate, built = job.bench.build(draft.variant, job.spec, side)
    if candidate is None:
        return Ready(draft, None, Verdict(Level.NONE, checks=(interface, built), failure="build"), sizes)
    verdict = job.verifier.smoke(candidate, (interface, built))
    if verdict.refused:
        job.bench.discard(candidate)
        return Ready(draft, None, verdict, sizes)
    return Ready(draft, candidate, verdict, sizes)
