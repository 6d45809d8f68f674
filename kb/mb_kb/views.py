"""What the knowledge base answers with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mb_targets.model import Action
from mb_targets.outcome import Speedup

Origin = Literal["same kernel", "same state", "coarser state", "similar kernel"]


@dataclass(frozen=True, slots=True)
class ActionValue:
    """What an action is worth in a state, by all that was tried in it and in coarser states.

    Attributes:
        estimate: Shrunk mean of the logarithm of the action's own effect; 0 is no gain.
        deviation: Standard deviation of that estimate: what a sampler draws with.
        success: Shrunk share of attempts that were not refused.
        tried: Attempts in this very state.
        verified: Of those, fully verified.
        seen: Attempts in all states that count here.
        best: Largest fully verified effect seen in any of them, 0 when there was none.
        failures: Refused attempts in all of them by the check that refused them, most frequent first.
    """

    action: Action
    estimate: float
    deviation: float
    success: float
    tried: int
    verified: int
    seen: int
    best: float
    failures: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition under which an action was seen to fail.

    Attributes:
        failure: The check that refused it.
        count: How often, in the nearest states in which it was seen.
        scope: How near that is: ``device`` is this very state, ``target`` the same work on any device
            of the target, ``family`` any work of this family.
    """

    action: Action
    condition: str
    failure: str
    count: int
    scope: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One outcome in short, for display.

    Attributes:
        chain: The actions as text; empty for the original.
        speedup: Against the original, None where it was not measured.
        gain: Whether it is a verified gain: only then may "faster" be said.
        failure: The check that refused it, empty when none did.
        variant: Hash of the variant; ``KnowledgeBase.source`` may have its text.
    """

    chain: str
    device: str
    speedup: Speedup | None
    gain: bool
    failure: str
    note: str
    created: float
    variant: str


@dataclass(frozen=True, slots=True)
class KernelPast:
    """What is known of one kernel.

    Attributes:
        count: Outcomes, all devices together.
        refused: Of those, refused by verification.
        gains: Of those, verified gains.
        failures: Refused outcomes by check, most frequent first.
        last: Time of the newest outcome, in seconds since the epoch.
        best: Verified gains, the best of each device first, then by the lower end of the interval.
        newest: The latest outcomes, newest first.
    """

    identity: str
    kernel: str
    target: str
    count: int
    refused: int
    gains: int
    failures: tuple[tuple[str, int], ...]
    last: float
    best: tuple[Attempt, ...] = ()
    newest: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True)
class SimilarKernel:
    """A kernel that looks alike; ``similarity`` is a cosine, 1.0 for the same counts."""

    similarity: float
    past: KernelPast


@dataclass(frozen=True, slots=True)
class Elite:
    """A chain that won before: where a search starts.

    Attributes:
        speedup: What it brought where it won.
        origin: Why it is offered here.
        kernel: Name of the kernel that it won on.
        device: Key of the device that it won on.
        similarity: Of that kernel to this one; 1.0 for the same kernel, 0.0 where only the state is shared.
        variant: Hash of the variant; ``KnowledgeBase.source`` has its text.
    """

    chain: tuple[Action, ...]
    speedup: Speedup
    origin: Origin
    kernel: str
    identity: str
    device: str
    similarity: float
    variant: str


@dataclass(frozen=True, slots=True)
class Stats:
    """What the base holds: counts, the bytes of its file, outcomes by device and refusals by check."""

    outcomes: int
    kernels: int
    vectors: int
    states: int
    sources: int
    waiting: int
    file_bytes: int
    refused: int
    gains: int
    failures: tuple[tuple[str, int], ...]
    devices: tuple[tuple[str, int], ...]
