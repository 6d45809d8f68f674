"""Where a kernel stands, worked out from its present text: never from a note that something was applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from mb_lsp.documents import unit_language
from mb_lsp.shelf import Job
from mb_targets import registry
from mb_targets.errors import TargetUnavailable
from mb_targets.model import Kernel, Variant

Kind = Literal["none", "running", "ready", "applied", "stale", "nothing", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class Standing:
    """What the jobs say of a kernel's present text.

    Attributes:
        kind: ``ready``: a result waits for this very text. ``applied``: this text is a result. ``stale``:
            there is a result, for another text or launch. ``nothing``: searched, nothing faster found.
        job: The job that says so.
        offer: Which of its offers this text is, when applied.
        relaunched: Whether the result is for this very text, but with another launch.
    """

    kind: Kind
    job: Job | None = None
    offer: int = 0
    relaunched: bool = False


def standing(kernel: Kernel, jobs: Sequence[Job], launch: str = "") -> Standing:
    """Work out where a kernel stands.

    Args:
        kernel: The kernel as it is now.
        jobs: Its jobs, the newest first.
        launch: Its launch as the user's files state it now; empty if that is not known.
    """
    for job in jobs:
        if job.running:
            return Standing("running", job)
    own = [job for job in jobs if job.identity == kernel.identity]
    if own:
        # A result stays on offer when a later search of the same text finds nothing.
        job = next((job for job in own if job.log.offers), own[0])
        if launch and job.asked and job.log.offers and not same_launch(job, job.asked, launch):
            return Standing("stale", job, relaunched=True)
        return Standing(_kind(job), job)
    for job in jobs:
        for index, offer in enumerate(job.log.offers):
            if identity_of(job.target, offer.variant) == kernel.identity:
                return Standing("applied", job, index)
    stale = next((job for job in jobs if job.log.offers), None)
    return Standing("stale", stale) if stale else Standing("none")


def same_launch(job: Job, asked: str, now: str) -> bool:
    """Tell whether a launch is the one a job measured: as it was stated then, or as it was resolved."""
    resolved = job.log.started.launch_comment if job.log.started else asked
    return now in (asked, resolved)


def identity_of(target: str, variant: Variant) -> str:
    """Give the identity of the kernel that a variant puts in place; empty if it cannot be found in it."""
    return _identity(target, variant.source, variant.name)


@lru_cache(maxsize=64)
def _identity(target: str, source: str, name: str) -> str:
    try:
        found = registry.load(target)
    except TargetUnavailable:
        return ""
    kernels = found.find_kernels(source, unit_language(found))
    return next((k.identity for k in kernels if k.name == name), "")


def _kind(job: Job) -> Kind:
    if job.phase == "interrupted":
        return "interrupted"
    if job.log.offers:
        return "ready"
    return "failed" if job.phase == "failed" else "nothing"
