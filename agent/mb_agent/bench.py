"""The worker processes of a job and what is built in them: the baseline, the incumbent, two for candidates.

When a candidate becomes the incumbent its process is kept and the old incumbent's is cleared for the next
candidate, so nothing is built twice.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mb_agent.errors import AgentError, TimedOut, WorkerDied
from mb_agent.measure import Contender, Pairs, Stop, calibrate, clock_of, race
from mb_agent.oracle import Case, Oracle
from mb_agent.trial import Candidate, patience
from mb_agent.worker import WorkerProcess
from mb_targets.errors import BuildError
from mb_targets.model import Device, LaunchSpec, Variant
from mb_targets.outcome import Check

BUILD_SECONDS = 30.0
# Processes for candidates: the incumbent's, and those of two that are built side by side.
CANDIDATES = 3


class Bench:
    """The sides of one job.

    Args:
        target: The target's name.
        device: The user's choice of device.
        folder: Where includes are looked up.
        start: Makes a worker process.
    """

    def __init__(
        self,
        target: str,
        device: str,
        folder: Path,
        start: Callable[[str, str], WorkerProcess] = WorkerProcess,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder = folder
        self.incumbent: Candidate | None = None
        self._start = partial(start, target, device)
        self._started: list[WorkerProcess] = []
        self._closed = False
        self._clock = clock
        self.baseline = self._new()
        self._launches: dict[tuple[int | None, int, int], int] = {}
        self._free = [self._new() for _ in range(CANDIDATES)]
        self.baseline.restart()

    def warm_up(self) -> None:
        """Start the candidates' processes, which open the device by themselves while others work."""
        for side in self._free:
            if side.pid is None and not self._closed:
                side.restart()

    def build(
        self, variant: Variant, spec: LaunchSpec, side: WorkerProcess | None = None
    ) -> tuple[Candidate | None, Check]:
        """Build a candidate in a process that was taken, or in a free one; the check says how it went."""
        side = side or self.take()
        started = self._clock()
        try:
            handle = side.build(variant, spec.options, self.folder, limit=BUILD_SECONDS)
        except (BuildError, WorkerDied, TimedOut) as error:
            self.give_back(side)
            return None, Check("build", False, self._clock() - started, str(error))
        return Candidate(variant, side, handle), Check("build", True, self._clock() - started)

    def discard(self, candidate: Candidate) -> None:
        """Free a candidate's program and its process; a dead process stays dead until it is needed."""
        if candidate.side.pid is not None:
            with contextlib.suppress(AgentError):
                candidate.side.close(candidate.handle)
        self.give_back(candidate.side)

    def promote(self, candidate: Candidate) -> None:
        """Make a candidate the incumbent and free the process of the one before."""
        before, self.incumbent = self.incumbent, candidate
        if before is not None:
            self.discard(before)

    def depose(self) -> None:
        """Drop the incumbent: verification refused it."""
        if self.incumbent is not None:
            self.discard(self.incumbent)
            self.incumbent = None

    def revive(self, candidate: Candidate, spec: LaunchSpec) -> bool:
        """Build a candidate again whose process has ended since; False when that is no longer possible."""
        if candidate.side.pid is not None:
            return True
        if self._closed:
            raise AgentError("the job was stopped")
        candidate.side.restart()
        try:
            candidate.handle = candidate.side.build(candidate.variant, spec.options, self.folder)
        except (BuildError, AgentError):
            return False
        return True

    def another_died(self, candidate: Candidate) -> bool:
        """Tell whether a process that a candidate was timed beside has ended, while its own has not."""
        others = [self.baseline, *([self.incumbent.side] if self.incumbent else [])]
        return candidate.side.pid is not None and any(side.pid is None for side in others)

    def fresh(self, variant: Variant, spec: LaunchSpec) -> Candidate:
        """Build a variant in a process that nothing has run in; the caller kills it.

        Raises:
            BuildError: It no longer builds.
            AgentError: Its process died.
        """
        side = self._new()
        try:
            return Candidate(
                variant, side, side.build(variant, spec.options, self.folder, limit=BUILD_SECONDS)
            )
        except BaseException:
            side.kill()
            raise

    def race(
        self,
        oracle: Oracle,
        rival: Candidate | None,
        candidate: Candidate,
        case: Case,
        device: Device,
        turns: int,
        stop: Stop,
    ) -> Pairs:
        """Time a rival (None is the original) against a candidate on a case's bytes.

        Raises:
            AgentError: A worker died or hung.
            RunError: A launch was refused.
            ValueError: A clock gave no time.
        """
        if rival is None:
            first = Contender(self.baseline, oracle.handle, case.launch)
        else:
            launch = oracle.launch(case.sizes, case.fill, rival.variant.launch)
            first = Contender(rival.side, rival.handle, launch, patience(case))
        launch = oracle.launch(case.sizes, case.fill, candidate.variant.launch)
        second = Contender(candidate.side, candidate.handle, launch, patience(case))
        inputs, clock = case.shared(0), clock_of(device)
        # Whoever is raced often need not be looked at again for how many launches make a sample.
        key = first.side.pid, first.handle, inputs.id
        known = self._launches.get(key) or calibrate(first, inputs, clock)
        self._launches[key] = known
        return race(first, second, inputs, clock, turns, stop, known)

    def close(self) -> None:
        """Kill every process at once, for good; may be called from any thread."""
        self._closed = True
        for side in tuple(self._started):
            side.kill()

    def _new(self) -> WorkerProcess:
        side = self._start()
        self._started.append(side)
        return side

    def take(self) -> WorkerProcess:
        """Take a process that holds no candidate, started (again) where there is none.

        Raises:
            AgentError: The job was stopped.
        """
        if self._closed:
            raise AgentError("the job was stopped")
        side = self._free.pop(0) if self._free else self._new()
        if side.pid is None:
            side.restart()
        return side

    def give_back(self, side: WorkerProcess) -> None:
        """Take a process back that was taken."""
        if side not in self._free:
            self._free.append(side)
