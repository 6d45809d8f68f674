"""The search: choose, apply, build, smoke-test, race the incumbent, judge, record. It knows no target.

Candidates are ranked cheaply, each against the best one so far in a process of its own; only what leads is
verified fully. Every attempt is written out as it ends.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from mb_agent.budget import Spending
from mb_agent.choose import Choice, Learned, Node, Policy
from mb_agent.conditions import conditions
from mb_agent.critic import judge
from mb_agent.errors import AgentError, OriginalRefused, sentence
from mb_agent.events import Tried
from mb_agent.implement import implement
from mb_agent.measure import SHOWABLE, Pairs, decided, narrow
from mb_agent.memory import Memory
from mb_agent.ready import ABREAST, Draft, Ready, make_ready
from mb_agent.record import Attempt
from mb_agent.report import Report
from mb_agent.setup import Job, launch_cost
from mb_agent.sizes import SCREEN_NS
from mb_agent.trial import Candidate
from mb_agent.verify import Verifier
from mb_targets.errors import TargetError
from mb_targets.model import NotApplicable, Variant
from mb_targets.outcome import MINIMUM_GAIN, Check, Level, Measurement, Outcome, Speedup, Verdict

RACE_TURNS = 10
# A candidate takes the lead when the lower end of its interval is beyond this: noise alone must not.
WORTH_LEADING = 1.02
# On a CPU device, event times swing by a third on a busy machine; below this ratio parallelism was lost.
EVENT_LOSS = 0.65
CONFIRM_TURNS = 12
# Search stops when this many candidates in a row brought nothing.
PATIENCE = 60
# A new leader is verified fully once it is this much (in log) beyond the last verified one.
WORTH_VERIFYING = math.log(1.2)
# What is said of a gain that the search itself found.
PRELIMINARY = "preliminary: verified and timed in the search, not again in a fresh process with fresh seeds"
# The time kept back for verifying and measuring the finalists.
RESERVE_SHARE, LEAST_RESERVE_S, MOST_RESERVE_S = 0.25, 3.0, 15.0


@dataclass(frozen=True, slots=True)
class Found:
    """What the search ended with.

    Attributes:
        nodes: Every variant that compared equal and was timed, the original first.
        refused: How many candidates verification refused.
        reason: Why it stopped, in words.
    """

    nodes: Sequence[Node]
    refused: int
    reason: str


@dataclass(slots=True)
class Search:
    """One search over the variants of a kernel."""

    job: Job
    policy: Policy
    memory: Memory
    spending: Spending
    report: Report
    now: Callable[[], float] = time.time
    nodes: list[Node] = field(default_factory=list)
    refused: int = 0
    _hashes: set[str] = field(default_factory=set)
    _leader: Node | None = None
    _verified: float = 0.0
    _verify_cost: float = 0.0
    _idle: int = 0

    def run(self) -> Found:
        """Search until the budget, the proposals or the patience run out."""
        if not self.nodes:
            self.add_node(self.job.oracle.original, 0.0)
        reason = ""
        while not reason:
            self.report.progress("searching", self.spending)
            reason = self._finished() or self._step()
        self._keep_launch()
        return Found(self.nodes, self.refused, reason)

    def add_node(self, variant: Variant, gain: float) -> Node:
        """Take in a variant as a parent for further actions."""
        job = self.job
        proposals = job.target.propose(job.kernel, job.spec, job.device, variant)
        node = Node(variant, gain, tuple(proposals))
        self.nodes.append(node)
        self._hashes.add(variant.hash)
        return node

    def take_up(self, tried: Sequence[Tried]) -> None:
        """Take in what an earlier run of this job has tried, so that none of it is tried again."""
        by_hash = {self.add_node(self.job.oracle.original, 0.0).variant.hash: self.nodes[0]}
        for event in tried:
            outcome = event.outcome
            known = by_hash.get(event.variant.hash)
            if known is not None:
                if outcome.verdict.refused:
                    self.nodes = [n for n in self.nodes if n is not known]
                continue
            self.spending.candidates += 1
            self._hashes.add(event.variant.hash)
            parent = by_hash.get(outcome.parent)
            if parent is not None:
                parent.tried |= {i for i, p in enumerate(parent.proposals) if p.action == outcome.action}
            if outcome.verdict.refused or outcome.step is None or parent is None:
                self.refused += outcome.verdict.refused
                continue
            gain = parent.gain + math.log(outcome.step.value)
            by_hash[event.variant.hash] = self.add_node(event.variant, gain)
        self._reinstate()

    def _finished(self) -> str:
        reserve = min(MOST_RESERVE_S, max(LEAST_RESERVE_S, RESERVE_SHARE * self.job.request.budget.seconds))
        if not self.spending.candidates:
            reserve = 0.0  # there is nothing to verify yet
        if self.spending.left_s <= reserve:
            return self._out_of_time()
        if self.spending.candidates >= self.job.request.budget.candidates:
            return "the candidates are spent"
        if self._idle >= PATIENCE:
            return f"{PATIENCE} candidates in a row brought nothing"
        return ""

    def _out_of_time(self) -> str:
        if self.spending.candidates:
            return "the time is spent"
        seconds = self.job.request.budget.seconds
        return f"no candidate was tried in {seconds:g} s: give a larger budget"

    def _step(self) -> str:
        drafts: list[Draft] = []
        room = min(ABREAST, self.job.request.budget.candidates - self.spending.candidates)
        useless: list[Choice] = []
        while len(drafts) < room and len(useless) < PATIENCE:
            choice = self.policy.next(self.nodes)
            if choice is None:
                break
            made = self._implement(choice)
            if made is None:
                useless.append(choice)
            else:
                drafts.append(Draft(choice, made))
        for ready in make_ready(self.job, drafts) if drafts else ():
            self.report.progress("searching", self.spending)
            self.policy.learn(self._attempt(ready))
            self._verify_leader()
        for choice in useless:
            self.policy.learn(Learned(choice, None, applicable=False))
        return "" if drafts or useless else "nothing is left to try"

    def _implement(self, choice: Choice) -> Variant | None:
        """Make what was chosen; None where it does not apply or was tried before."""
        job = self.job
        made = implement(job.target, job.kernel, job.spec, job.device, choice)
        if isinstance(made, NotApplicable) or made.hash in self._hashes:
            return None
        self._hashes.add(made.hash)
        self.spending.candidates += 1
        return made

    def _keep_launch(self) -> None:
        """Where the best variant changes the launch, try it also in the form that does not."""
        job, best = self.job, max(self.nodes, key=lambda n: n.gain)
        if best.variant.launch is None:
            return
        for i, proposal in enumerate(best.proposals):
            if i in best.tried:
                continue
            choice = Choice(best, (proposal.action,), proposal.expected, proposal.reason)
            made = implement(job.target, job.kernel, job.spec, job.device, choice)
            if isinstance(made, NotApplicable) or made.launch is not None or made.hash in self._hashes:
                continue
            best.tried.add(i)
            self._hashes.add(made.hash)
            self.spending.candidates += 1
            self._attempt(make_ready(job, [Draft(choice, made)])[0])
            return

    def _attempt(self, ready: Ready) -> Learned:
        """Race one candidate that is ready; say what it brought over its parent."""
        job, choice, variant = self.job, ready.draft.choice, ready.draft.variant
        candidate, verdict = ready.candidate, ready.verdict
        self._idle += 1
        if candidate is not None and ready.sizes != job.plan.screen:  # the timed size has changed since
            verdict = job.verifier.smoke(candidate, verdict.checks)
        if candidate is None or verdict.refused:
            if candidate is not None:
                job.bench.discard(candidate)
            return self._refuse(choice, variant, verdict)
        try:
            pairs = self._race(candidate)
        except (AgentError, TargetError, ValueError) as error:
            if isinstance(error, ValueError) or job.bench.another_died(candidate):
                job.bench.discard(candidate)
                return Learned(choice, None, applicable=False)  # it says nothing of this candidate
            job.bench.discard(candidate)
            untimed = Check("timing", False, 0.0, sentence(error))
            failed = Verdict(Level.COMPILED, checks=(*verdict.checks, untimed), failure="timing")
            return self._refuse(choice, variant, failed)
        return Learned(choice, self._accept(choice, candidate, verdict, pairs))

    def _race(self, candidate: Candidate) -> Pairs:
        """Time a candidate against the leader, or against the original while nothing leads."""
        job = self.job
        case = job.timed_case()
        rival = job.bench.incumbent
        if rival is not None and not job.bench.revive(rival, job.spec):
            job.bench.depose()
            self._reinstate()
            rival = job.bench.incumbent
        return job.bench.race(
            job.oracle, rival, candidate, case, job.device, RACE_TURNS, decided(WORTH_LEADING)
        )

    def _accept(self, choice: Choice, candidate: Candidate, verdict: Verdict, pairs: Pairs) -> float | None:
        job = self.job
        ratio = pairs.speedup()
        leads = ratio.low > WORTH_LEADING and pairs.event_ratio() > EVENT_LOSS
        if leads:
            verdict = job.verifier.probe(candidate, verdict)
            if verdict.refused:
                job.bench.discard(candidate)
                return self._refuse(choice, candidate.variant, verdict).gain
        leader_gain = self._leader.gain if self._leader else 0.0
        gain = leader_gain + math.log(ratio.value)
        step = _scaled(ratio, math.exp(leader_gain - choice.parent.gain))
        total = pairs.measurement(job.device) if job.bench.incumbent is None else None
        node = self.add_node(candidate.variant, gain)
        self._record(choice, candidate.variant, verdict, step, total)
        if leads:
            job.bench.promote(candidate)
            self._leader = node
            self._idle = 0
        else:
            job.bench.discard(candidate)
        return gain - choice.parent.gain

    def _refuse(self, choice: Choice, variant: Variant, verdict: Verdict) -> Learned:
        self.refused += 1
        self._record(choice, variant, verdict, None, None)
        return Learned(choice, None)

    def _record(
        self,
        choice: Choice,
        variant: Variant,
        verdict: Verdict,
        step: Speedup | None,
        total: Measurement | None,
    ) -> None:
        outcome = self._outcome(choice, variant, verdict, step, total)
        # What a whole chain brought says nothing of its last action alone.
        alone = len(choice.actions) == 1
        kept = outcome if alone else replace(outcome, step=None, constraint="")
        self.memory.record(kept, self.job.features, "")
        self.report.emit(Tried(self.now(), outcome, variant))

    def _outcome(
        self,
        choice: Choice,
        variant: Variant,
        verdict: Verdict,
        step: Speedup | None,
        total: Measurement | None,
    ) -> Outcome:
        what = " ".join(map(str, choice.actions)) or "none"
        note = judge(what, choice.expected, verdict, step)
        attempt = Attempt(variant, choice.parent.variant.hash, verdict, choice.expected, self.now())
        return attempt.outcome(self.job, note.text, constraint=note.constraint, step=step, total=total)

    def _verify_leader(self) -> None:
        """Verify the leader fully when it is well beyond the last verified one and there is time for it."""
        leader, job = self._leader, self.job
        candidate = job.bench.incumbent
        if leader is None or candidate is None or leader.gain - self._verified < WORTH_VERIFYING:
            return
        if self._verified and self._verify_cost > 0.1 * self.spending.left_s:
            return
        self.report.progress("verifying the best so far", self.spending)
        started = self.spending.seconds
        verdict = job.verifier.full(candidate, Verdict(Level.COMPILED, smoke=True))
        self._verify_cost = self.spending.seconds - started
        if verdict.refused:
            self._depose(leader, verdict)
            return
        self._verified = leader.gain
        self._confirm(leader, candidate, verdict)

    def _confirm(self, leader: Node, candidate: Candidate, verdict: Verdict) -> None:
        """Time a verified leader against the original itself; only that is shown as a gain."""
        job = self.job
        pairs = self._against_original(candidate)
        if pairs is None:
            return
        measured = pairs.measurement(job.device)
        leader.gain = self._verified = math.log(measured.speedup.value)
        if verdict.full and measured.faster(MINIMUM_GAIN):
            # What a cancelled or killed job leaves to its user. It is no new attempt to be remembered.
            choice = Choice(self.nodes[0], leader.variant.chain, math.exp(leader.gain), "verified fully")
            outcome = self._outcome(choice, leader.variant, verdict, measured.speedup, measured)
            noted = replace(outcome, note=f"{PRELIMINARY}; {outcome.note}")
            must_hold = (PRELIMINARY, *conditions(job.kernel, leader.variant, verdict))
            self.report.emit(Tried(self.now(), noted, leader.variant, must_hold))
            self.report.best = measured.speedup
            self.report.progress("verified an improvement", self.spending, force=True)
            self._move_home(candidate)

    def _against_original(self, candidate: Candidate) -> Pairs | None:
        """Time a candidate against the original; a process that ends is started again, once."""
        job = self.job
        for _ in range(2):
            if not job.bench.revive(candidate, job.spec):
                return None
            stop = narrow(0.1, SHOWABLE)
            try:
                return job.bench.race(
                    job.oracle, None, candidate, job.timed_case(), job.device, CONFIRM_TURNS, stop
                )
            except OriginalRefused:
                raise
            except (AgentError, TargetError, ValueError):
                continue
        return None

    def _move_home(self, candidate: Candidate) -> None:
        """Time at the user's own size from here on, where the leader, unlike the original, is quick there."""
        job = self.job
        if job.plan.screen == job.plan.home:
            return
        try:
            cost = launch_cost(job.oracle, job.device, job.plan.home, candidate)
        except (AgentError, TargetError, ValueError):
            return  # the leader is built again when it is next needed
        if cost.ns <= SCREEN_NS:
            at_home = replace(job.plan, screen=job.plan.home)
            verifier = Verifier(job.target, job.oracle, at_home, job.seed)
            self.job = replace(job, plan=at_home, verifier=verifier)

    def _depose(self, leader: Node, verdict: Verdict) -> None:
        """Drop a leader that verification refused, and put the next best in its place."""
        self.refused += 1
        self.nodes.remove(leader)
        choice = Choice(self.nodes[0], leader.variant.chain, math.exp(leader.gain), "verified fully")
        self._record(choice, leader.variant, verdict, None, None)
        self.job.bench.depose()
        self._reinstate()

    def _reinstate(self) -> None:
        """Build the best variant that is left and make it the leader."""
        job = self.job
        self._leader = None
        for node in sorted(self.nodes[1:], key=lambda n: -n.gain):
            if node.gain <= 0:
                return
            candidate, _ = job.bench.build(node.variant, job.spec)
            if candidate is not None:
                job.bench.promote(candidate)
                self._leader = node
                return


def _scaled(speedup: Speedup, factor: float) -> Speedup:
    return Speedup(speedup.value * factor, speedup.low * factor, speedup.high * factor)
