"""Run a candidate on one case at a time and compare; the first thing that is wrong ends its trial."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from mb_agent.errors import AgentError, TimedOut, WorkerDied
from mb_agent.inputs import Fill, dtype_of
from mb_agent.oracle import Case, Oracle
from mb_agent.sizes import Plan, Sizes
from mb_agent.tolerance import compare
from mb_agent.worker import WorkerProcess
from mb_targets.errors import RunError, TargetError
from mb_targets.model import Variant
from mb_targets.outcome import Check, CounterExample
from mb_targets.protocol import Launch

# How long one call may take for a candidate, of the original's own time. Its least leaves time to compile:
# some runtimes do so with a first launch.
LEAST_SECONDS, TIMES_ORIGINAL, MOST_SECONDS = 5.0, 30.0, 30.0


@dataclass(slots=True)
class Candidate:
    """A variant built in a worker of its own."""

    variant: Variant
    side: WorkerProcess
    handle: int


@dataclass(slots=True)
class Trial:
    """What is found out about a candidate while its checks run.

    Attributes:
        bases: What the bounds of the outputs compared so far were derived from, and of how many each.
        slack: Most bytes past a buffer's end that could have been read unseen.
    """

    candidate: Candidate
    seed: int
    checks: list[Check] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    runs: int = 0
    worst: float = 0.0
    bases: Counter[str] = field(default_factory=Counter)
    slack: int = 0

    @property
    def basis(self) -> str:
        """Say what the bounds were derived from; where they were derived in several ways, how many each."""
        if len(self.bases) < 2:
            return next(iter(self.bases), "")
        return "; ".join(f"{count} comparisons by {basis}" for basis, count in self.bases.most_common())


class Refused(Exception):
    """The way out of a check that has decided."""

    def __init__(self, check: str, evidence: str, counter: CounterExample | None = None) -> None:
        super().__init__(check)
        self.check = check
        self.evidence = evidence
        self.counter = counter


class Runner:
    """Runs candidates against one oracle.

    Args:
        oracle: What the original gives.
        plan: The sizes.
    """

    def __init__(self, oracle: Oracle, plan: Plan) -> None:
        self.oracle = oracle
        self.plan = plan

    def attempt(
        self, trial: Trial, sizes: Sizes, fill: Fill, poison: int = 0, finite_only: bool = False
    ) -> bool:
        """Run one case and compare; False when the original or the variant's launch has no such case.

        With ``finite_only``, what the variant makes of elements for which the original gives NaN or an
        infinity is noted and does not refuse it: there the original defines no number.
        """
        case = self.oracle.case(sizes, fill)
        if isinstance(case, str):
            trial.unchecked.append(f"{written(sizes)}, {fill.distribution}: {case}")
            return False
        launch = self.launch(trial, case)
        if launch is None:
            return False
        outputs = self._run(trial, case, launch, poison)
        for name, expected in case.expected.items():
            got = np.frombuffer(outputs[name], dtype_of(launch, name))
            share, wrong = compare(expected, got, case.before(name, poison))
            if wrong is not None and finite_only:
                trial.unchecked.append(
                    f"{fill.distribution}: {name}[{wrong.index}] is {wrong.got}, was {wrong.expected}"
                )
                share, wrong = compare(expected, got, case.before(name, poison), finite_only=True)
            trial.bases[expected.basis] += 1
            if wrong is not None:
                counter = CounterExample(str(fill), dict(sizes), name, wrong.index, wrong.got, wrong.expected)
                place = f"{name}[{wrong.index}]" if wrong.index >= 0 else f"the fold of {name}"
                raise Refused(
                    "",
                    f"{place} is {wrong.got}, expected {wrong.expected} ({written(sizes)}; {fill})",
                    counter,
                )
            trial.worst = max(trial.worst, share)
        return True

    def run_twice(self, trial: Trial, sizes: Sizes, fill: Fill) -> bool:
        """Refuse a candidate whose two runs on the same bytes differ; False when there is no such case."""
        case = self.oracle.case(sizes, fill)
        launch = None if isinstance(case, str) else self.launch(trial, case)
        if isinstance(case, str) or launch is None:
            return False
        first, second = (self._run(trial, case, launch, 0) for _ in range(2))
        for name, data in first.items():
            if data != second[name]:
                raise Refused("", f"two runs on the same inputs differ in {name} ({written(sizes)}; {fill})")
        return True

    def launch(self, trial: Trial, case: Case) -> Launch | None:
        """Work out the candidate's launch of a case; None where its conditions do not hold."""
        change = trial.candidate.variant.launch
        if change is None:
            return case.launch
        if any(g % m for g, m in zip(case.launch.global_size, change.multiples, strict=False)):
            return None
        try:
            return self.oracle.launch(case.sizes, case.fill, change)
        except TargetError as error:
            raise Refused("launch", f"cannot be launched at {written(case.sizes)}: {error}") from None

    def _run(self, trial: Trial, case: Case, launch: Launch, poison: int) -> dict[str, bytes]:
        trial.runs += 1
        where = f"{written(case.sizes)}; {case.fill}"
        limit = patience(case)
        try:
            result = trial.candidate.side.run(
                trial.candidate.handle, launch, case.shared(poison), limit=limit
            )
        except TimedOut:
            raise Refused("time limit", f"not done after {limit:.0f} s ({where})") from None
        except WorkerDied as died:
            check = "guard pages" if died.touched_memory else "crash"
            raise Refused(check, f"{str(died).splitlines()[0]} ({where})") from None
        except (RunError, AgentError) as error:
            raise Refused("launch", f"{str(error).splitlines()[0]} ({where})") from None
        trial.slack = max(trial.slack, result.slack)
        if result.changed_inputs:
            raise Refused("inputs unchanged", f"wrote to {', '.join(result.changed_inputs)} ({where})")
        return dict(result.outputs)


def patience(case: Case) -> float:
    """Give the seconds that a candidate's worker may take for a call on a case."""
    return min(MOST_SECONDS, max(LEAST_SECONDS, TIMES_ORIGINAL * case.seconds))


def written(sizes: Sizes) -> str:
    """Write sizes as evidence shows them."""
    return " ".join(
        f"{name}={value:g}" if value % 1 else f"{name}={value:.0f}" for name, value in sizes.items()
    )
