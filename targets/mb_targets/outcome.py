"""What verification and measurement found of a variant: the values that a claim is made of.

Frozen plain data like those of ``model``.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Literal

from mb_targets.model import Action, State

Label = Literal["measured", "modelled", "counted"]

MINIMUM_GAIN = 1.03
"""Below this a speed-up is not claimed, however quiet a device is."""


class Level(enum.IntEnum):
    """How much evidence a variant has (DESIGN: evidence levels)."""

    NONE = -1
    COMPILED = 0
    CHECKED = 1
    VALUES = 2
    SANITIZED = 3
    TIMED = 4


@dataclass(frozen=True, slots=True)
class CounterExample:
    """Where a wrong variant differs.

    Attributes:
        inputs: How the inputs were made: ``normal, seed 7``.
        sizes: The symbols' values.
        argument: The output's name.
        index: Flat index of the worst element.
        got: What the variant gave, as text, so that NaN and large integers survive.
        expected: What the reference gave.
    """

    inputs: str
    sizes: dict[str, float]
    argument: str
    index: int
    got: str
    expected: str


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a variant: its name, whether it passed, what it cost and what it saw.

    ``passed`` is None where the check was called for but could not be made here.
    """

    name: str
    passed: bool | None
    seconds: float
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What verification found.

    Attributes:
        level: The evidence level reached, at most SANITIZED: timing is no part of being right.
        smoke: Whether at least a smoke run compared equal, which is what timing needs.
        checks: In the order made.
        failure: Name of the check that refused the variant, empty when none did.
        counter_example: Where it differed, when values decided.
        error: Largest error of the variant in units of the bound; 1.0 is just allowed.
        basis: What the bound was derived from.
        unchecked: What was not checked, in words.
    """

    level: Level
    smoke: bool = False
    checks: tuple[Check, ...] = ()
    failure: str = ""
    counter_example: CounterExample | None = None
    error: float = 0.0
    basis: str = ""
    unchecked: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """True when some check failed."""
        return bool(self.failure)

    @property
    def full(self) -> bool:
        """True when everything that this variant calls for passed on the device."""
        return not self.refused and self.level >= Level.SANITIZED


@dataclass(frozen=True, slots=True)
class Speedup:
    """Baseline time over variant time: the median of paired ratios, with a 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Write it as people read it: ``2.31x [2.25-2.36]``."""
        return f"{self.value:.2f}x [{self.low:.2f}-{self.high:.2f}]"


@dataclass(frozen=True, slots=True)
class Measurement:
    """Paired times of the baseline and a variant, taken turn about.

    Attributes:
        clock: ``cpu`` (CPU time of the process) or ``event`` (the device's own time).
        speedup: By ``clock``.
        event_ratio: Median ratio by the device's event times; on a CPU device a win needs it above 1 too.
        baseline_ns: Median of one launch by ``clock``, in nanoseconds.
        variant_ns: Likewise.
        samples: Pairs taken.
        label: Always ``measured`` here; models and counters use the other labels.
        device: Key of the device.
        method: How, in words.
    """

    clock: Literal["cpu", "event"]
    speedup: Speedup
    event_ratio: float
    baseline_ns: float
    variant_ns: float
    samples: int
    device: str
    method: str
    label: Label = "measured"

    def __post_init__(self) -> None:
        """Refuse a measurement that did not happen."""
        if self.samples < 1 or not (self.baseline_ns > 0 and self.variant_ns > 0):
            raise ValueError("a measurement needs samples, and times above zero")

    def faster(self, minimum: float) -> bool:
        """Tell whether the gain is above the minimum claimable one, by both clocks."""
        return self.speedup.low > minimum and (self.clock == "event" or self.event_ratio > 1.0)


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a claim came from: enough to replay it.

    Attributes:
        created: Seconds since the epoch.
        tool: Our version.
    """

    original: str
    variant: str
    device: str
    driver: str
    toolchain: str
    options: tuple[str, ...]
    created: float
    tool: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that is kept of one attempt.

    Attributes:
        state: Where it was tried.
        action: The last action of the chain.
        chain: The whole chain.
        identity: The kernel's identity digest.
        kernel: The kernel's name, for people.
        parent: Hash of the variant it was made from.
        verdict: What verification found.
        step: Against its parent where both were measured, else None.
        total: Against the original, else None.
        expected: The gain that was expected of the action.
        note: The critic's words: what happened against what was expected, and why.
        constraint: The condition learned from a failure, empty when there was none.
        minimum: The smallest gain that could be claimed there and then, from timing the original against
            itself.
    """

    state: State
    action: Action
    chain: tuple[Action, ...]
    identity: str
    kernel: str
    parent: str
    verdict: Verdict
    provenance: Provenance
    step: Speedup | None = None
    total: Measurement | None = None
    expected: float = 1.0
    note: str = ""
    constraint: str = ""
    minimum: float = MINIMUM_GAIN

    def __post_init__(self) -> None:
        """Hold the rule that nothing is timed before a smoke run compared equal."""
        if self.total is not None and not self.verdict.smoke:
            raise ValueError("measured a variant that never compared equal")

    def gain(self, minimum: float) -> bool:
        """Tell whether this may be offered: fully verified, and faster by more than ``minimum``."""
        return self.verdict.full and self.total is not None and self.total.faster(minimum)
