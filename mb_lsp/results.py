"""What ``modelblaster optimize`` found for one kernel: the JSON that it prints is these structs."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Literal

import msgspec

from mb_agent import events
from mb_targets.model import LaunchSpec, Variant
from mb_targets.outcome import Check, Measurement, Speedup

SCHEMA = 1
VerdictWord = Literal["faster", "nothing faster", "nothing tried", "cancelled", "failed"]


class SpeedupResult(msgspec.Struct, frozen=True):
    """Baseline time over variant time, with a 95 % interval, by the clock named."""

    value: float
    low: float
    high: float
    clock: str
    device: str
    event_ratio: float
    baseline_ns: float
    variant_ns: float
    samples: int

    def __str__(self) -> str:
        """Write it as people read it."""
        return str(Speedup(self.value, self.low, self.high))


class ValueResult(msgspec.Struct, frozen=True):
    """One value of the launch and where it came from."""

    name: str
    value: str
    origin: str


class LaunchResult(msgspec.Struct, frozen=True):
    """The launch that was measured; ``comment`` would give it again."""

    comment: str
    values: tuple[ValueResult, ...]


class OfferResult(msgspec.Struct, frozen=True):
    """One verified, measured improvement."""

    level: str
    speedup: SpeedupResult
    changes_launch: bool
    chain: tuple[str, ...]
    conditions: tuple[str, ...]
    diff: str
    diff_file: str
    checks: tuple[Check, ...]
    unchecked: tuple[str, ...]
    basis: str
    error: float
    evidence: str
    final: bool = True


class Result(msgspec.Struct, frozen=True):
    """All that the command has to say of one kernel; ``docs/cli.md`` explains each field."""

    schema: int
    file: str
    kernel: str
    verdict: VerdictWord
    level: str = ""
    speedup: SpeedupResult | None = None
    launch: LaunchResult | None = None
    diff: str = ""
    changes_launch: bool = False
    offers: tuple[OfferResult, ...] = ()
    device: str = ""
    tried: int = 0
    refused: int = 0
    control: Speedup | None = None
    reason: str = ""
    question: str = ""
    applied: tuple[str, ...] = ()
    problem: str = ""
    seed: int | None = None
    job: str = ""


def offer_result(offer: events.Offer, final: bool = True) -> OfferResult:
    """Turn an offer into what is printed; ``final`` says whether a last round confirmed it."""
    return OfferResult(
        level=level_word(offer.verdict.full),
        speedup=_speedup(offer.measurement),
        changes_launch=offer.changes_launch,
        chain=chain_words(offer.variant),
        conditions=offer.conditions,
        diff=from_here(offer.diff, Path.cwd()),
        diff_file="",
        checks=offer.verdict.checks,
        unchecked=offer.verdict.unchecked,
        basis=offer.verdict.basis,
        error=offer.verdict.error,
        evidence=offer.evidence,
        final=final,
    )


def from_here(diff: str, folder: Path) -> str:
    """Name the files of a diff from a folder where they lie in it, so that ``patch -p1`` works there."""
    lines = diff.split("\n")
    inside = f"{folder.as_posix().strip('/')}/"
    for number, (first, second) in enumerate(itertools.pairwise(lines)):
        if first.startswith(f"--- a/{inside}") and second.startswith(f"+++ b/{inside}"):
            lines[number] = first.replace(inside, "", 1)
            lines[number + 1] = second.replace(inside, "", 1)
    return "\n".join(lines)


def launch_result(launch: LaunchSpec, comment: str) -> LaunchResult:
    """List every value of a launch with its source."""
    values = [ValueResult("global", f"({', '.join(launch.global_size)})", launch.origin)]
    local = "none" if launch.local_size is None else f"({', '.join(launch.local_size)})"
    values.append(ValueResult("local", local, launch.origin))
    if launch.options:
        values.append(ValueResult("options", " ".join(launch.options), launch.origin))
    values += [
        ValueResult(s.name, f"{s.value:g}" if s.value % 1 else f"{s.value:.0f}", s.origin)
        for s in launch.symbols
    ]
    for a in launch.arguments:
        width = f"{a.dtype}x{a.lanes}" if a.lanes > 1 else a.dtype
        what = f"{width} = {a.extent}" if a.role == "scalar" else f"{a.role} {width}[{a.extent}]"
        values.append(ValueResult(a.name, what, a.origin))
    return LaunchResult(comment, tuple(values))


def chain_words(variant: Variant) -> tuple[str, ...]:
    """Write the actions that made a variant."""
    return tuple(str(a) for a in variant.chain)


def level_word(full: bool) -> str:
    """Name the evidence level of something that was timed: E4 needs every check passed first."""
    return "E4" if full else "E2"


def _speedup(m: Measurement) -> SpeedupResult:
    s = m.speedup
    return SpeedupResult(
        value=s.value,
        low=s.low,
        high=s.high,
        clock=m.clock,
        device=m.device,
        event_ratio=m.event_ratio,
        baseline_ns=m.baseline_ns,
        variant_ns=m.variant_ns,
        samples=m.samples,
    )
