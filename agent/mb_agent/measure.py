"""Take paired times of two programs, turn about, and say how sure their ratio is.

A turn refills the buffers of both sides with the same bytes, then times one after the other; which goes first
alternates. A sample is a batch of launches long enough that what the clock includes besides them is small: on
a CPU device the parent reads the CPU clock of the worker process, which counts all threads, the runtime's
scheduling and the worker's handling of one request.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mb_agent.worker import SharedInputs, WorkerProcess
from mb_targets.model import Device
from mb_targets.outcome import MINIMUM_GAIN, Measurement, Speedup
from mb_targets.protocol import Launch

SAMPLE_NS = 3_000_000
MOST_LAUNCHES = 2_000
RESAMPLES = 400
# After so many turns, whoever is not ahead by the median is given up.
HALFWAY = 5
# Fewer pairs than this have no 95 % interval: even their extremes miss the median more often.
SHOWABLE = 6


@dataclass(frozen=True, slots=True)
class Contender:
    """A program in a worker process, with the launch to time it with.

    Attributes:
        limit: Seconds that one call to its worker may take.
    """

    side: WorkerProcess
    handle: int
    launch: Launch
    limit: float = 30.0


@dataclass(slots=True)
class Pairs:
    """What was measured: nanoseconds of one launch, by both clocks, a pair a turn.

    Attributes:
        clock: The one that decides.
        cpu: Pairs (first, second) by the CPU clock; empty on devices that are not the CPU.
        event: Pairs by the device's events.
        launches: Launches in each sample, of the first and the second.
    """

    clock: str
    cpu: list[tuple[float, float]] = field(default_factory=list)
    event: list[tuple[float, float]] = field(default_factory=list)
    launches: tuple[int, int] = (1, 1)

    @property
    def deciding(self) -> list[tuple[float, float]]:
        """The pairs by the clock that decides."""
        return self.cpu if self.clock == "cpu" else self.event

    def speedup(self) -> Speedup:
        """Give the median of first over second with its 95 % interval.

        Raises:
            ValueError: Nothing was measured.
        """
        return interval([a / b for a, b in self.deciding])

    def event_ratio(self) -> float:
        """Give the median ratio by the device's events."""
        return float(np.median([a / b for a, b in self.event]))

    def measurement(self, device: Device) -> Measurement:
        """Make the record of what was measured; of few pairs it says that they are for screening only."""
        first, second = zip(*self.deciding, strict=True)
        return Measurement(
            clock="cpu" if self.clock == "cpu" else "event",
            speedup=self.speedup(),
            event_ratio=self.event_ratio(),
            baseline_ns=float(np.median(first)),
            variant_ns=float(np.median(second)),
            samples=len(self.deciding),
            device=device.key,
            method=(
                f"{len(self.deciding)} interleaved turns of {self.launches[0]} and {self.launches[1]} "
                "launches, "
                f"{'CPU time of the process' if self.clock == 'cpu' else 'device events'}, "
                f"median of paired ratios, {self._interval()}"
            ),
        )

    def _interval(self) -> str:
        if len(self.deciding) < SHOWABLE:
            return "for screening only: too few for a 95 % interval"
        return "bootstrap 95 % interval"


Stop = Callable[[Pairs], bool]


def interval(ratios: Sequence[float], seed: int = 0) -> Speedup:
    """Give the median of paired ratios and the bootstrap 95 % interval of that median.

    Raises:
        ValueError: There are none, or one is not a positive number: a missing measurement is an error.
    """
    values = np.asarray(ratios, dtype=np.float64)
    if not values.size or not np.all(np.isfinite(values)) or not np.all(values > 0):
        raise ValueError("no measurement: a sample is missing or not a positive time")
    picks = np.random.default_rng(seed).integers(0, values.size, (RESAMPLES, values.size))
    low, high = np.quantile(np.median(values[picks], axis=1), [0.025, 0.975])
    return Speedup(float(np.median(values)), float(low), float(high))


def clock_of(device: Device) -> str:
    """Name the clock that decides on a device."""
    return "cpu" if device.kind == "cpu" else "event"


def race(
    first: Contender,
    second: Contender,
    inputs: SharedInputs,
    clock: str,
    turns: int,
    stop: Stop,
    known: int = 0,
) -> Pairs:
    """Time two contenders turn about until ``stop`` says that the ratio is decided, or the turns are spent.

    ``known`` is how many launches make a sample of the first, where that is known already.

    Raises:
        AgentError: A worker died or hung.
        RunError: A launch was refused.
        ValueError: A clock gave no time.
    """
    launches = (known or calibrate(first, inputs, clock), calibrate(second, inputs, clock))
    pairs = Pairs(clock, launches=launches)
    for turn in range(turns):
        times: dict[int, tuple[float, float]] = {}
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            times[which] = _sample((first, second)[which], inputs, clock, launches[which])
        if not all(event > 0 and (cpu > 0 or clock != "cpu") for cpu, event in times.values()):
            raise ValueError("no measurement: a clock gave no time")
        pairs.event.append((times[0][1], times[1][1]))
        if clock == "cpu":
            pairs.cpu.append((times[0][0], times[1][0]))
        if stop(pairs):
            break
    return pairs


def decided(worth: float) -> Stop:
    """Stop once the ratio is clearly on one side of ``worth``: the further off, the fewer turns it takes."""

    def stop(pairs: Pairs) -> bool:
        ratios = [a / b for a, b in pairs.deciding]
        turns = len(ratios)
        if turns < 2:
            return False
        if turns < 4:
            return max(ratios) < 0.8 * worth or (turns == 3 and min(ratios) > 1.1 * worth)
        if turns >= HALFWAY and float(np.median(ratios)) < worth:
            return True  # it would have to be lucky from here on
        found = interval(ratios)
        return found.high < worth or (turns >= SHOWABLE and found.low > worth)

    return stop


def narrow(
    share: float, least: int, seconds: float = 5.0, clock: Callable[[], float] = time.monotonic
) -> Stop:
    """Stop once the interval is no wider than a share of its median, or it has taken long enough.

    Args:
        share: Of the median.
        least: Turns to take at least; when time is up, half of them or as many as may be shown.
        seconds: When time is up.
    """
    started = clock()

    def stop(pairs: Pairs) -> bool:
        turns = len(pairs.deciding)
        if turns >= max(SHOWABLE, least // 2) and clock() - started > seconds:
            return True
        if turns < least:
            return False
        found = pairs.speedup()
        return found.high - found.low <= share * found.value

    return stop


def minimum_gain(control: Speedup | None) -> float:
    """Give the smallest gain that may be claimed, from the A/A control: the baseline against itself."""
    if control is None:
        return MINIMUM_GAIN
    return max(MINIMUM_GAIN, control.high, 1 / control.low)


def one_launch_ns(contender: Contender, inputs: SharedInputs, clock: str) -> float:
    """Time one launch, roughly."""
    return _sample(contender, inputs, clock, 1)[0 if clock == "cpu" else 1]


def calibrate(contender: Contender, inputs: SharedInputs, clock: str) -> int:
    """Find how many launches make a sample long enough."""
    once = one_launch_ns(contender, inputs, clock)
    launches = min(MOST_LAUNCHES, max(1, math.ceil(SAMPLE_NS / max(once, 1.0))))
    if launches >= 8:  # a single short launch is mostly overhead: look again with some
        some = _sample(contender, inputs, clock, 8)[0 if clock == "cpu" else 1]
        launches = min(MOST_LAUNCHES, max(1, math.ceil(SAMPLE_NS / max(some, 1.0))))
    return launches


def _sample(contender: Contender, inputs: SharedInputs, clock: str, launches: int) -> tuple[float, float]:
    """Time one batch: nanoseconds of one launch by the CPU clock (0 where it is not read) and by events."""
    side, handle, limit = contender.side, contender.handle, contender.limit
    side.prepare(handle, contender.launch, inputs, launches, limit=limit)
    if clock != "cpu":
        return 0.0, side.time(handle, limit=limit).event_ns
    spent, sample = side.time_cpu(handle, limit=limit)
    return spent / launches, sample.event_ns
