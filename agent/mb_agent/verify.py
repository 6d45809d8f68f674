"""Refuse wrong variants: one pipeline for all targets, cheap checks first, each with its cost and evidence.

``smoke`` is what a candidate needs before it may be timed; ``full`` is what a variant needs before it may be
offered. A check is a function in one of the two tables below; the first that fails ends the pipeline.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mb_agent.errors import AgentError, TimedOut, WorkerDied
from mb_agent.inputs import FLOATS, POISONS, Fill, dtype_of, has_floats
from mb_agent.oracle import Case, Oracle
from mb_agent.sizes import Plan, Sizes
from mb_agent.tolerance import compare
from mb_agent.worker import WorkerProcess
from mb_targets.errors import RunError, TargetError
from mb_targets.model import Check, CounterExample, Kernel, Level, Parameter, Variant, Verdict
from mb_targets.protocol import Launch, Target

RUN_SECONDS = 5.0
SANITIZE_SECONDS = 40.0
# At how many sizes each memory and race check is made: a regular one and an odd one.
SIMULATIONS = 2

# Distributions whose values are special, and what a difference on them means.
SPECIAL = ("signed zeros", "subnormals", "minus infinity", "infinities", "not a number")
INTEGER_ONLY = ("normal", "uniform", "negative", "large", "zeros", "ones")


@dataclass(slots=True)
class Candidate:
    """A variant built in a worker of its own."""

    variant: Variant
    side: WorkerProcess
    handle: int


@dataclass(slots=True)
class Trial:
    """What is found out about a candidate while its checks run."""

    candidate: Candidate
    seed: int
    checks: list[Check] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    runs: int = 0
    worst: float = 0.0
    basis: str = "equality"


class _Refused(Exception):
    """The way out of a check that has decided; never leaves this module."""

    def __init__(self, check: str, evidence: str, counter: CounterExample | None = None) -> None:
        super().__init__(check)
        self.check = check
        self.evidence = evidence
        self.counter = counter


class Verifier:
    """Verify the variants of one kernel against one oracle.

    Args:
        target: The target.
        oracle: What the original gives.
        plan: The sizes.
        seed: Root of the inputs' seeds; no candidate ever sees it.
    """

    def __init__(
        self,
        target: Target,
        oracle: Oracle,
        plan: Plan,
        seed: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.target = target
        self.oracle = oracle
        self.plan = plan
        self.seed = seed
        self._clock = clock

    def screen(self, variant: Variant) -> Check:
        """Look at the text only: the entry point and its parameters must be the original's."""
        started = self._clock()
        problem = interface_problem(self.target, self.oracle.kernel, variant)
        return Check("interface", not problem, self._clock() - started, problem or "name and parameters kept")

    def smoke(self, candidate: Candidate, built: Sequence[Check] = ()) -> Verdict:
        """Compare one run at the size that is timed; what timing needs."""
        trial = Trial(candidate, self.seed, list(built))
        return self._judge(trial, _SMOKE, Level.COMPILED)

    def full(self, candidate: Candidate, before: Verdict, seed: int | None = None) -> Verdict:
        """Make every check that the variant calls for.

        Args:
            candidate: The variant, smoke-tested.
            before: What the smoke run found.
            seed: Seeds nobody saw, for a final verification; None keeps this verifier's.
        """
        trial = Trial(candidate, self.seed if seed is None else seed, list(before.checks))
        trial.worst, trial.basis = before.error, before.basis
        return self._judge(trial, _FULL, Level.VALUES)

    def _judge(self, trial: Trial, stages: Sequence[tuple[str, Stage]], level: Level) -> Verdict:
        counter = None
        failure = ""
        for name, stage in stages:
            started = self._clock()
            try:
                for check in stage(self, trial):
                    trial.checks.append(replace(check, seconds=self._clock() - started))
                    started = self._clock()
            except _Refused as refused:
                failure, counter = refused.check or name, refused.counter
                trial.checks.append(Check(failure, False, self._clock() - started, refused.evidence))
                break
        missing = [c.name for c in trial.checks if c.passed is None and stages is _FULL]
        unchecked = [f"{c.name}: {c.evidence}" for c in trial.checks if c.passed is None] + trial.unchecked
        if failure:
            level = Level.COMPILED
        elif stages is _FULL and not missing:
            level = Level.SANITIZED
        return Verdict(
            level=level,
            smoke=not failure or stages is _FULL,
            checks=tuple(trial.checks),
            failure=failure,
            counter_example=counter,
            error=trial.worst,
            basis=trial.basis,
            unchecked=tuple(dict.fromkeys(unchecked)),
        )

    def attempt(self, trial: Trial, sizes: Sizes, fill: Fill, poison: int = 0) -> bool:
        """Run one case and compare; False when the original or the variant's launch has no such case."""
        case = self.oracle.case(sizes, fill)
        if isinstance(case, str):
            trial.unchecked.append(f"{_sizes(sizes)}, {fill.distribution}: {case}")
            return False
        launch = self._launch(trial, case)
        if launch is None:
            return False
        outputs = self._run(trial, case, launch, poison)
        for name, expected in case.expected.items():
            got = np.frombuffer(outputs[name], dtype_of(launch, name))
            share, wrong = compare(expected, got, case.before(name, poison))
            trial.basis = max(trial.basis, expected.basis, key=len)
            if wrong is not None:
                counter = CounterExample(str(fill), dict(sizes), name, wrong.index, wrong.got, wrong.expected)
                place = f"{name}[{wrong.index}]" if wrong.index >= 0 else f"the fold of {name}"
                raise _Refused(
                    "",
                    f"{place} is {wrong.got}, expected {wrong.expected} ({_sizes(sizes)}; {fill})",
                    counter,
                )
            trial.worst = max(trial.worst, share)
        return True

    def run_twice(self, trial: Trial, sizes: Sizes, fill: Fill) -> None:
        """Refuse a candidate whose two runs on the same bytes differ."""
        case = self.oracle.case(sizes, fill)
        launch = None if isinstance(case, str) else self._launch(trial, case)
        if isinstance(case, str) or launch is None:
            return
        first, second = (self._run(trial, case, launch, 0) for _ in range(2))
        for name, data in first.items():
            if data != second[name]:
                raise _Refused("", f"two runs on the same inputs differ in {name} ({_sizes(sizes)}; {fill})")

    def _launch(self, trial: Trial, case: Case) -> Launch | None:
        change = trial.candidate.variant.launch
        if change is None:
            return case.launch
        if any(g % m for g, m in zip(case.launch.global_size, change.multiples, strict=False)):
            return None
        try:
            return self.oracle.launch(case.sizes, case.fill, change)
        except TargetError as error:
            raise _Refused("launch", f"cannot be launched at {_sizes(case.sizes)}: {error}") from None

    def _run(self, trial: Trial, case: Case, launch: Launch, poison: int) -> dict[str, bytes]:
        trial.runs += 1
        where = f"{_sizes(case.sizes)}; {case.fill}"
        limit = RUN_SECONDS + 20 * case.seconds
        try:
            result = trial.candidate.side.run(
                trial.candidate.handle, launch, case.shared(poison), limit=limit
            )
        except TimedOut:
            raise _Refused("time limit", f"not done after {limit:.0f} s ({where})") from None
        except WorkerDied as died:
            check = "guard pages" if died.touched_memory else "crash"
            raise _Refused(check, f"{str(died).splitlines()[0]} ({where})") from None
        except (RunError, AgentError) as error:
            raise _Refused("launch", f"{str(error).splitlines()[0]} ({where})") from None
        if result.changed_inputs:
            raise _Refused("inputs unchanged", f"wrote to {', '.join(result.changed_inputs)} ({where})")
        return dict(result.outputs)


Stage = Callable[[Verifier, Trial], Iterator[Check]]


def interface_problem(target: Target, kernel: Kernel, variant: Variant) -> str:
    """Say how a variant's entry point differs from the original's; empty when it does not."""
    found = {k.name: k for k in target.find_kernels(variant.source, kernel.language)}
    if variant.name not in found:
        return f"there is no kernel {variant.name}"
    ours, theirs = kernel.parameters, found[variant.name].parameters
    if len(ours) != len(theirs):
        return f"{len(theirs)} parameters instead of {len(ours)}"
    for a, b in zip(ours, theirs, strict=True):
        if _interface(a) != _interface(b):
            return f"parameter {b.name} is not the original's {a.name}"
    return ""


def _interface(parameter: Parameter) -> tuple[str, str, str]:
    return parameter.name, parameter.type_name, parameter.space


def _smoke(verifier: Verifier, trial: Trial) -> Iterator[Check]:
    """One run at the timed size."""
    sizes = verifier.plan.screen
    if not verifier.attempt(trial, sizes, Fill("normal", trial.seed)):
        raise _Refused("launch", f"cannot be launched at {_sizes(sizes)}")
    yield Check("smoke", True, 0.0, f"equal within the bound at {_sizes(sizes)}")


def _distributions(verifier: Verifier, trial: Trial) -> Iterator[Check]:
    """Every ordinary distribution at a small size, over both poisons."""
    names = [d for d in FLOATS if d not in SPECIAL] if has_floats(verifier.oracle.spec) else INTEGER_ONLY
    made = [
        name
        for k, name in enumerate(names)
        if verifier.attempt(trial, verifier.plan.small, Fill(name, trial.seed + 1 + k), k % POISONS)
    ]
    yield Check(
        "distributions", True, 0.0, f"{len(made)} at {_sizes(verifier.plan.small)}: {', '.join(made)}"
    )


def _scalars(verifier: Verifier, trial: Trial) -> Iterator[Check]:
    """Other values of the floating-point scalars."""
    if not any(a.role == "scalar" and a.dtype[0] == "f" for a in verifier.oracle.spec.arguments):
        return
    for k, factor in enumerate((1.37, -0.61, 0.0)):
        verifier.attempt(trial, verifier.plan.small, Fill("normal", trial.seed + 50 + k, factor), k % POISONS)
    yield Check("scalars", True, 0.0, "floating-point scalars x 1.37, -0.61 and 0")


def _sizes_stage(verifier: Verifier, trial: Trial) -> Iterator[Check]:
    """Odd sizes, small ones, and those that are no multiple of anything."""
    done = [
        _sizes(sizes)
        for k, sizes in enumerate(verifier.plan.tries)
        if verifier.attempt(
            trial, sizes, Fill(("normal", "integers")[k % 2], trial.seed + 100 + k), k % POISONS
        )
    ]
    skipped = len(verifier.plan.tries) - len(done)
    yield Check("sizes", True, 0.0, f"{'; '.join(done)}" + (f" ({skipped} do not apply)" if skipped else ""))


def _special(verifier: Verifier, trial: Trial) -> Iterator[Check]:
    """Special values, where the original defines a result for them."""
    if not has_floats(verifier.oracle.spec):
        return
    made = []
    for k, name in enumerate(SPECIAL):
        try:
            if verifier.attempt(trial, verifier.plan.small, Fill(name, trial.seed + 200 + k), k % POISONS):
                made.append(name)
        except _Refused as refused:
            if name != "not a number" or refused.counter is None:
                raise
            trial.unchecked.append(f"inputs that hold NaN: {refused.evidence}")
    yield Check("special values", True, 0.0, ", ".join(made))


def _repeats(verifier: Verifier, trial: Trial) -> Iterator[Check]:
    """The same bytes twice, at two sizes."""
    for k, sizes in enumerate((verifier.plan.small, verifier.plan.screen)):
        verifier.run_twice(trial, sizes, Fill("normal", trial.seed + 1 if k == 0 else trial.seed))
    yield Check("determinism", True, 0.0, "two runs on the same inputs give the same bits")
    yield Check("guard pages", True, 0.0, f"no access outside a buffer in {trial.runs} runs")
    yield Check("inputs unchanged", True, 0.0, f"in {trial.runs} runs")


def _sanitizers(verifier: Verifier, trial: Trial) -> Iterator[Check]:
    """The memory and race checks that the variant's constructs call for."""
    oracle, variant = verifier.oracle, trial.candidate.variant
    for name in verifier.target.sanitizers(oracle.kernel, variant):
        made = 0
        for sizes in verifier.plan.simulated:
            if made == SIMULATIONS:
                break
            case = oracle.case(sizes, Fill("normal", trial.seed + 400))
            launch = None if isinstance(case, str) else verifier._launch(trial, case)
            if isinstance(case, str) or launch is None:
                continue
            finding = _sanitize(trial, name, oracle, launch, case)
            if finding is None:
                break
            if finding:
                raise _Refused(name, f"{finding} ({_sizes(sizes)})")
            made += 1
        evidence = f"nothing found at {made} sizes" if made else "called for, but could not be made here"
        yield Check(name, True if made else None, 0.0, evidence)


def _sanitize(trial: Trial, name: str, oracle: Oracle, launch: Launch, case: Case) -> str | None:
    candidate = trial.candidate
    try:
        return candidate.side.sanitize(
            name, candidate.variant, oracle.spec.options, launch, case.shared(0), limit=SANITIZE_SECONDS
        )
    except TimedOut:
        return None
    except WorkerDied as died:
        return str(died).splitlines()[0]


_SMOKE: tuple[tuple[str, Stage], ...] = (("smoke", _smoke),)
_FULL: tuple[tuple[str, Stage], ...] = (
    ("distributions", _distributions),
    ("sizes", _sizes_stage),
    ("scalars", _scalars),
    ("special values", _special),
    ("determinism", _repeats),
    ("sanitizers", _sanitizers),
)


def _sizes(sizes: Sizes) -> str:
    return " ".join(f"{name}={value:g}" for name, value in sizes.items())
