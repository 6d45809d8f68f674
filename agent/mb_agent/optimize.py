"""One job from request to result, in this process: queue, prepare, search, finish."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mb_agent.bench import Bench
from mb_agent.budget import Spending
from mb_agent.choose import POLICIES, MakePolicy
from mb_agent.errors import AgentError, JobRefused
from mb_agent.events import Event, Finished, Progress, Queued, Request, Started, Tried
from mb_agent.finish import Finish
from mb_agent.loop import Search
from mb_agent.memory import Memory
from mb_agent.queue_lock import hold
from mb_agent.report import Report
from mb_agent.setup import prepare
from mb_targets import registry


@dataclass(slots=True)
class Optimization:
    """A job that can be run once, and stopped from another thread.

    Attributes:
        request: What to optimize.
        folder: The job's folder.
        emit: Takes each event as it happens.
        before: The events of an earlier run of this job, to go on from.
        policies: The search policies by name.
        locks: Where device locks lie, None for the user's own folder.
    """

    request: Request
    folder: Path
    emit: Callable[[Event], None]
    before: Sequence[Event] = ()
    policies: Mapping[str, MakePolicy] = field(default_factory=lambda: POLICIES)
    locks: Path | None = None
    now: Callable[[], float] = time.time
    _bench: Bench | None = None
    _stopped: bool = False

    def run(self) -> Finished:
        """Do the job; its last event is what is returned.

        Raises:
            JobRefused: It cannot be done; the message says why.
            TargetError: The toolchain or device is missing.
            AgentError: A worker process failed beyond repair.
        """
        request = self.request
        make_policy = self.policies.get(request.policy)
        if make_policy is None:
            raise JobRefused(f"there is no policy {request.policy!r}; there are: {', '.join(self.policies)}")
        if request.seed is not None and request.seed < 0:
            raise JobRefused(f"the seed is {request.seed}; give a whole number from 0 on")
        target = registry.load(request.kernel.target)
        folder = Path(request.path).parent if request.path else self.folder
        # Before any process is started: opening a device beside another job's measurement would disturb it.
        with hold(self.locks or lock_folder(), target.name, self._queued):
            self._bench = bench = Bench(target.name, request.device, folder)
            try:
                if self._stopped:
                    raise AgentError("the job was stopped")
                return self._work(bench, make_policy)
            finally:
                bench.close()

    def stop(self) -> None:
        """Kill every worker process at once."""
        self._stopped = True
        if self._bench is not None:
            self._bench.close()

    def _work(self, bench: Bench, make_policy: MakePolicy) -> Finished:
        request = self.request
        report = Report(self.emit, now=self.now)
        spending = Spending(request.budget, time.monotonic, self._spent())
        report.progress("running the original", spending)
        target = registry.load(request.kernel.target)
        seed = next((e.seed for e in self.before if isinstance(e, Started)), None)

        def slow(seconds: float) -> None:
            if not report.aside:  # of the user's own size, which is the first
                report.aside = f"the original takes {seconds:.0f} s a launch"
                report.progress("running the original", spending, force=True)

        job = prepare(request, target, bench, seed, slow)
        comment = target.describe_launch(job.kernel, job.spec)
        self.emit(Started(self.now(), job.device, job.state, job.spec, comment, job.seed))
        memory = Memory(request.knowledge)
        try:
            advice = memory.advise(job.state, job.features, job.kernel.identity)
            policy = make_policy(advice, random.Random(job.seed))
            search = Search(job, policy, memory, spending, report, self.now)
            tried = [e for e in self.before if isinstance(e, Tried)]
            if tried:
                search.take_up(tried)
            found = search.run()
            finish = Finish(search, self.folder)
            offers = finish.offers(found)
            reason = "; ".join(filter(None, (found.reason, *finish.notes, memory.problem)))
            counts = spending.candidates, search.refused
            finished = Finished(self.now(), offers, *counts, reason, finish.control)
        finally:
            memory.close()
        self.emit(finished)
        return finished

    def _queued(self, before: int) -> None:
        self.emit(Queued(self.now(), before))

    def _spent(self) -> float:
        """Seconds that an earlier run of this job has used."""
        shares = [e.share for e in self.before if isinstance(e, Progress)]
        return self.request.budget.seconds * max(shares, default=0.0)


def lock_folder() -> Path:
    """Give the user's folder of device locks: one for all that the user runs, wherever else its data lies."""
    chosen = os.environ.get("MODELBLASTER_LOCKS")
    return Path(chosen) if chosen else Path.home() / ".cache" / "modelblaster" / "locks"
