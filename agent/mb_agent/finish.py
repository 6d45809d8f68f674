"""End a job: verify the best variants anew, in fresh processes with fresh seeds, measure and offer them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mb_agent.choose import Node
from mb_agent.diff import unified
from mb_agent.errors import AgentError
from mb_agent.events import Offer, Tried
from mb_agent.evidence import Evidence, write
from mb_agent.inputs import Fill
from mb_agent.loop import Found, Search
from mb_agent.measure import Pairs, minimum_gain, narrow
from mb_agent.record import provenance
from mb_agent.trial import Candidate
from mb_agent.verify import Verifier
from mb_targets.errors import BuildError, RunError
from mb_targets.model import Action, NotApplicable, Variant
from mb_targets.outcome import Level, Measurement, Outcome, Speedup, Verdict

FINAL_TURNS = 24
# How many of each kind are verified before giving up: the next best may hold where the best did not.
FINALISTS = 3
# Seeds of the final verification start this far from the search's, where no candidate has been.
FRESH = 1 << 20
# A log gain this small is none.
NOTHING = math.log(1.01)
# What a variant that changes the launch must bring (in log) over one that keeps it, to be worth the trouble.
CHANGING = math.log(1.05)
# What an action must bring (in log) to be worth its place in the diff.
PLAINNESS = 0.01
# How far past the budget (as a share of it) further finalists may still be tried.
OVERTIME = 0.2


@dataclass(slots=True)
class Finish:
    """The last part of a job; ``notes`` says why something good was not offered."""

    search: Search
    folder: Path
    control: Speedup | None
    notes: list[str] = field(default_factory=list)

    def offers(self, found: Found) -> tuple[Offer, ...]:
        """Offer at most one variant that keeps the launch and one that changes it, the best one first."""
        ranked = [n for n in sorted(found.nodes[1:], key=_worth, reverse=True) if n.gain > NOTHING]
        kept = self._best([n for n in ranked if n.variant.launch is None])
        least = math.log(kept.measurement.speedup.value) if kept else 0.0
        changed = self._best(
            [n for n in ranked if n.variant.launch is not None and n.gain > least + CHANGING]
        )
        made = [o for o in (changed, kept) if o is not None]
        if changed and kept and kept.measurement.speedup.value >= changed.measurement.speedup.value:
            made = [kept]  # changing the launch would buy nothing
        return tuple(made)

    def _best(self, nodes: Sequence[Node]) -> Offer | None:
        """Offer the first that holds; what follows one that is not faster is not faster either."""
        for number, node in enumerate(nodes[:FINALISTS]):
            if number and self.search.spending.left_s < -OVERTIME * self.search.job.request.budget.seconds:
                return None
            self.search.report.progress("verifying a finalist", self.search.spending, force=True)
            try:
                tried = self._try(node)
            except (BuildError, RunError, AgentError, ValueError):
                continue  # it does not even run in a fresh process
            if isinstance(tried, NotApplicable):
                self.notes.append(tried.reason)
                return None
            if tried is not None:
                return tried
        return None

    def _try(self, node: Node) -> Offer | NotApplicable | None:
        """Verify and measure one finalist; None when another may do better."""
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
            return NotApplicable("the best variant is not faster by more than the noise on this device")
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
        case = job.oracle.case(job.plan.home, Fill("normal", job.seed + FRESH))
        if isinstance(case, str):
            raise AgentError(case)
        return job.bench.race(job.oracle, None, candidate, case, job.device, FINAL_TURNS, narrow(0.04, 9))

    def _record(self, node: Node, verdict: Verdict, measurement: Measurement | None) -> None:
        search, job, variant = self.search, self.search.job, node.variant
        action = variant.chain[-1] if variant.chain else Action("none")
        outcome = Outcome(
            state=job.state,
            action=action,
            chain=variant.chain,
            identity=job.kernel.identity,
            kernel=job.kernel.name,
            parent=job.oracle.original.hash,
            verdict=verdict,
            provenance=provenance(job, variant, search.now()),
            total=measurement,
            expected=math.exp(node.gain),
            note=_note(verdict, measurement),
        )
        search.memory.record(outcome, job.features, variant.source)
        search.report.emit(Tried(search.now(), outcome, variant))

    def _offer(
        self, variant: Variant, verdict: Verdict, measurement: Measurement, pairs: Pairs
    ) -> Offer | NotApplicable:
        job = self.search.job
        request = job.request
        documents = job.target.patch(job.kernel, job.spec, variant, Path(request.path), request.text)
        if isinstance(documents, NotApplicable):
            return documents
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
            ),
        )
        return Offer(
            variant=variant,
            verdict=verdict,
            measurement=measurement,
            changes_launch=variant.launch is not None,
            diff=unified(documents, request.path, request.text),
            evidence=str(place),
            conditions=_conditions(variant, verdict),
        )


def _worth(node: Node) -> float:
    """Rank by gain; of two that are as fast, the plainer one is better."""
    return node.gain - PLAINNESS * len(node.variant.chain)


def _note(verdict: Verdict, measurement: Measurement | None) -> str:
    if verdict.refused or measurement is None:
        return f"final verification in a fresh process: refused by {verdict.failure}"
    s = measurement.speedup
    return f"verified and measured in a fresh process: {s.value:.2f}x [{s.low:.2f}-{s.high:.2f}]"


def _conditions(variant: Variant, verdict: Verdict) -> tuple[str, ...]:
    conditions = [f"not checked: {u}" for u in verdict.unchecked]
    if variant.launch is not None and any(m > 1 for m in variant.launch.multiples):
        multiples = " x ".join(str(m) for m in variant.launch.multiples if m > 1)
        conditions.insert(0, f"the original's global size must be a multiple of {multiples}")
    return tuple(conditions)
