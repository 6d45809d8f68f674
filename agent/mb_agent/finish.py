"""End a job: verify the best variants anew, in fresh processes with fresh seeds, measure and offer them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mb_agent.choose import NOTHING, Node
from mb_agent.conditions import conditions
from mb_agent.confine import LAYERS
from mb_agent.diff import unified
from mb_agent.errors import AgentError, OriginalRefused
from mb_agent.events import Offer, Tried
from mb_agent.evidence import Evidence, write
from mb_agent.inputs import Fill
from mb_agent.loop import Found, Search
from mb_agent.measure import Pairs, minimum_gain, narrow
from mb_agent.oracle import Case
from mb_agent.record import Attempt, provenance
from mb_agent.setup import control
from mb_agent.trial import Candidate
from mb_agent.verify import Verifier
from mb_targets.errors import TargetError
from mb_targets.model import DocumentEdits, NotApplicable, Variant
from mb_targets.outcome import Level, Measurement, Speedup, Verdict

FINAL_TURNS = 24
FINAL_LEAST = 12
# How many of each kind are verified before giving up: the next best may hold where the best did not.
FINALISTS = 3
# Seeds of the final verification start this far from the search's, where no candidate has been.
FRESH = 1 << 20
# What a variant that changes the launch must bring (in log) over one that keeps it, to be worth the trouble.
CHANGING = math.log(1.05)
# What an action must bring (in log) to be worth its place in the diff.
PLAINNESS = 0.01
# How far past the budget (as a share of it) further finalists may still be tried.
OVERTIME = 0.2


@dataclass(frozen=True, slots=True)
class NotFaster:
    """What became of a finalist that holds and brings no more than noise."""


@dataclass(slots=True)
class Finish:
    """The last part of a job; ``notes`` says why something good was not offered."""

    search: Search
    folder: Path
    control: Speedup | None = None
    notes: list[str] = field(default_factory=list)

    def offers(self, found: Found) -> tuple[Offer, ...]:
        """Offer at most one variant that keeps the launch and one that changes it, the best one first."""
        ranked = [n for n in sorted(found.nodes[1:], key=_worth, reverse=True) if n.gain > NOTHING]
        if self.search.spending.candidates:
            self._time_noise(bool(ranked))
        kept = self._best([n for n in ranked if n.variant.launch is None])
        least = math.log(kept.measurement.speedup.value) if kept else 0.0
        changed = self._best(
            [n for n in ranked if n.variant.launch is not None and n.gain > least + CHANGING]
        )
        made = [o for o in (changed, kept) if o is not None]
        if changed and kept and kept.measurement.speedup.value >= changed.measurement.speedup.value:
            made = [kept]  # changing the launch would buy nothing
        return tuple(made)

    def _time_noise(self, at_home: bool) -> None:
        """Time the original against itself; where something is to be claimed, at the size of the claim."""
        search, job = self.search, self.search.job
        search.report.progress("timing the original against itself", search.spending, force=True)
        case = self._final_case() if at_home else job.timed_case()
        self.control = control(job, case)
        missing = [layer for layer in LAYERS if layer not in job.bench.baseline.confined]
        if missing:
            self.notes.append(
                f"variants ran without {' and '.join(missing)}, which this system does not have"
            )
        if self.control is None:
            self.notes.append("the original could not be timed against itself")

    def _final_case(self) -> Case:
        job = self.search.job
        case = job.oracle.case(job.plan.home, Fill("normal", job.seed + FRESH))
        if isinstance(case, str):
            raise OriginalRefused(f"{job.kernel.name} cannot be timed: {case}")
        return case

    def _best(self, nodes: Sequence[Node]) -> Offer | None:
        """Offer the first that holds; what follows one that is not faster is not faster either."""
        unpatched = False
        for number, node in enumerate(nodes[:FINALISTS]):
            if number and self.search.spending.left_s < -OVERTIME * self.search.job.request.budget.seconds:
                return None
            if unpatched and isinstance(self._patch(node.variant), NotApplicable):
                continue
            self.search.report.progress("verifying a finalist", self.search.spending, force=True)
            try:
                tried = self._try(node)
            except OriginalRefused:
                raise
            except (TargetError, AgentError, ValueError):
                continue  # it does not even run in a fresh process
            match tried:
                case Offer():
                    return tried
                case NotFaster():
                    self.notes.append("the best variant is not faster by more than the noise on this device")
                    return None
                case NotApplicable():
                    self.notes.append(tried.reason)
                    unpatched = True
        return None

    def _try(self, node: Node) -> Offer | NotFaster | NotApplicable | None:
        """Verify and measure one; None where it does not hold, NotApplicable where it has no edits."""
        job = self.search.job
        candidate = job.bench.fresh(node.variant, job.spec)
        try:
            verdict = self._verify(candidate)
            if verdict.refused:
                self._record(node, verdict, None)
                return None
            if not job.bench.revive(candidate, job.spec):
                return None
            pairs = self._measure(candidate)
        finally:
            candidate.side.kill()
        measurement = pairs.measurement(job.device)
        self._record(node, verdict, measurement)
        if not verdict.full:
            return None
        if not measurement.faster(minimum_gain(self.control)):
            return NotFaster()
        return self._offer(node.variant, verdict, measurement, pairs)

    def _verify(self, candidate: Candidate) -> Verdict:
        """Make every check at the user's own size, with seeds nobody saw."""
        job = self.search.job
        at_home = replace(job.plan, screen=job.plan.home)
        verifier = Verifier(job.target, job.oracle, at_home, job.seed + FRESH)
        interface = verifier.screen(candidate.variant)
        if not interface.passed:
            return Verdict(Level.NONE, checks=(interface,), failure="interface")
        verdict = verifier.smoke(candidate, (interface,))
        return verdict if verdict.refused else verifier.full(candidate, verdict)

    def _measure(self, candidate: Candidate) -> Pairs:
        job = self.search.job
        stop = narrow(0.04, FINAL_LEAST)
        return job.bench.race(job.oracle, None, candidate, self._final_case(), job.device, FINAL_TURNS, stop)

    def _record(self, node: Node, verdict: Verdict, measurement: Measurement | None) -> None:
        search, job, variant = self.search, self.search.job, node.variant
        attempt = Attempt(variant, job.oracle.original.hash, verdict, math.exp(node.gain), search.now())
        note, minimum = _note(verdict, measurement), minimum_gain(self.control)
        outcome = attempt.outcome(job, note, total=measurement, minimum=minimum)
        search.memory.record(outcome, job.features, variant.source)
        must_hold = conditions(job.kernel, variant, verdict)
        search.report.emit(Tried(search.now(), outcome, variant, must_hold))

    def _patch(self, variant: Variant) -> Sequence[DocumentEdits] | NotApplicable:
        job, request = self.search.job, self.search.job.request
        return job.target.patch(job.kernel, job.spec, variant, Path(request.path), request.text)

    def _offer(
        self, variant: Variant, verdict: Verdict, measurement: Measurement, pairs: Pairs
    ) -> Offer | NotApplicable:
        job = self.search.job
        request = job.request
        documents = self._patch(variant)
        if isinstance(documents, NotApplicable):
            s = measurement.speedup
            what = (
                "the best variant that changes the launch"
                if variant.launch is not None
                else "the best variant"
            )
            return NotApplicable(f"{what}, {_figure(s)}, cannot be offered: {documents.reason}")
        place = write(
            self.folder,
            Evidence(
                kernel=job.kernel,
                launch=job.spec,
                variant=variant,
                verdict=verdict,
                measurement=measurement,
                device=job.device,
                state=job.state,
                precision=request.precision,
                provenance=provenance(job, variant, self.search.now()),
                seed=job.seed,
                final_seed=job.seed + FRESH,
                home=dict(job.plan.home),
                small=dict(job.plan.small),
                sizes=tuple(dict(s) for s in job.plan.tries),
                cpu_ns=tuple(pairs.cpu),
                event_ns=tuple(pairs.event),
                launches=pairs.launches,
                control=self.control,
                minimum_gain=minimum_gain(self.control),
                confined=job.bench.baseline.confined,
            ),
        )
        return Offer(
            variant=variant,
            verdict=verdict,
            measurement=measurement,
            changes_launch=variant.launch is not None,
            diff=unified(documents, request.path, request.text),
            evidence=str(place),
            conditions=conditions(job.kernel, variant, verdict),
        )


def _worth(node: Node) -> float:
    """Rank by gain; of two that are as fast, the plainer one is better."""
    return node.gain - PLAINNESS * len(node.variant.chain)


def _note(verdict: Verdict, measurement: Measurement | None) -> str:
    if verdict.refused or measurement is None:
        return f"final verification in a fresh process: refused by {verdict.failure}"
    return f"verified and measured in a fresh process: {_figure(measurement.speedup)}"


def _figure(s: Speedup) -> str:
    return f"{s.value:.2f}x [{s.low:.2f}-{s.high:.2f}]"
