"""The checks, in the order they are made: cheap ones first.

Each is a function that runs the candidate through a trial and yields what it found; one that finds something
wrong raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from mb_agent.errors import TimedOut, WorkerDied
from mb_agent.inputs import FLOATS, POISONS, Fill, has_floats
from mb_agent.oracle import Case, Oracle
from mb_agent.trial import Refused, Runner, Trial, written
from mb_targets.outcome import Check
from mb_targets.protocol import Launch

SANITIZE_SECONDS = 40.0
# At how many sizes each memory and race check is made: a regular one and an odd one.
SIMULATIONS = 2

# Distributions whose values are special, and those of them for which an original may define no result.
SPECIAL = ("signed zeros", "subnormals", "minus infinity", "infinities", "not a number")
UNDEFINED = ("minus infinity", "infinities", "not a number")
INTEGER_ONLY = ("normal", "uniform", "negative", "large", "zeros", "ones")


Stage: TypeAlias = Callable[[Runner, Trial], Iterator[Check]]
Table: TypeAlias = Sequence[tuple[str, Stage]]


def _smoke(runner: Runner, trial: Trial) -> Iterator[Check]:
    """One run at the timed size."""
    sizes = runner.plan.screen
    if not runner.attempt(trial, sizes, Fill("normal", trial.seed)):
        raise Refused("launch", f"cannot be launched at {written(sizes)}")
    yield Check("smoke", True, 0.0, f"equal within the bound at {written(sizes)}")


def _odd_sizes(runner: Runner, trial: Trial) -> Iterator[Check]:
    """One run each at two sizes that are not square and no multiple of anything."""
    tries = runner.plan.tries
    for k in sorted({min(1, len(tries) - 1), len(tries) - 1} - {-1}):
        runner.attempt(
            trial, tries[k], Fill(("normal", "integers")[k % 2], trial.seed + 100 + k), k % POISONS
        )
    yield Check("odd sizes", True, 0.0, "equal at two odd sizes")


def _distributions(runner: Runner, trial: Trial) -> Iterator[Check]:
    """Every ordinary distribution at a small size, over both poisons."""
    names = [d for d in FLOATS if d not in SPECIAL] if has_floats(runner.oracle.spec) else INTEGER_ONLY
    made = [
        name
        for k, name in enumerate(names)
        if runner.attempt(trial, runner.plan.small, Fill(name, trial.seed + 1 + k), k % POISONS)
    ]
    if not made:
        raise Refused("", f"it cannot be launched at {written(runner.plan.small)}, where inputs are varied")
    yield Check("distributions", True, 0.0, f"{len(made)} at {written(runner.plan.small)}: {', '.join(made)}")


def _scalars(runner: Runner, trial: Trial) -> Iterator[Check]:
    """Other values of the floating-point scalars."""
    if not any(a.role == "scalar" and a.dtype[0] == "f" for a in runner.oracle.spec.arguments):
        return
    for k, factor in enumerate((1.37, -0.61, 0.0)):
        runner.attempt(trial, runner.plan.small, Fill("normal", trial.seed + 50 + k, factor), k % POISONS)
    yield Check("scalars", True, 0.0, "floating-point scalars x 1.37, -0.61 and 0")


def _other_sizes(runner: Runner, trial: Trial) -> Iterator[Check]:
    """Odd sizes, small ones, and those that are no multiple of anything."""
    done = [
        written(sizes)
        for k, sizes in enumerate(runner.plan.tries)
        if runner.attempt(
            trial, sizes, Fill(("normal", "integers")[k % 2], trial.seed + 100 + k), k % POISONS
        )
    ]
    skipped = len(runner.plan.tries) - len(done)
    if skipped and not done:
        trial.unchecked.append("other sizes: it does not apply to any that was tried")
    yield Check("sizes", True, 0.0, f"{'; '.join(done)}" + (f" ({skipped} do not apply)" if skipped else ""))


def _special(runner: Runner, trial: Trial) -> Iterator[Check]:
    """Special values, where the original defines a result for them."""
    if not has_floats(runner.oracle.spec):
        return
    made = [
        name
        for k, name in enumerate(SPECIAL)
        if runner.attempt(
            trial, runner.plan.small, Fill(name, trial.seed + 200 + k), k % POISONS, name in UNDEFINED
        )
    ]
    yield Check("special values", True, 0.0, ", ".join(made))


def _repeats(runner: Runner, trial: Trial) -> Iterator[Check]:
    """The same bytes twice, at two sizes."""
    for k, sizes in enumerate((runner.plan.small, runner.plan.screen)):
        runner.run_twice(trial, sizes, Fill("normal", trial.seed + 1 if k == 0 else trial.seed))
    yield Check("determinism", True, 0.0, "two runs on the same inputs give the same bits")
    yield Check("guard pages", True, 0.0, f"no access outside a buffer in {trial.runs} runs")
    yield Check("inputs unchanged", True, 0.0, f"in {trial.runs} runs")


def _sanitizers(runner: Runner, trial: Trial) -> Iterator[Check]:
    """The memory and race checks that the variant's constructs call for."""
    oracle, variant = runner.oracle, trial.candidate.variant
    for name in runner.oracle.target.sanitizers(oracle.kernel, variant):
        made = 0
        for sizes in runner.plan.simulated:
            if made == SIMULATIONS:
                break
            case = oracle.case(sizes, Fill("normal", trial.seed + 400))
            launch = None if isinstance(case, str) else runner.launch(trial, case)
            if isinstance(case, str) or launch is None:
                continue
            finding = _sanitize(trial, name, oracle, launch, case)
            if finding is None:
                break
            if finding:
                raise Refused(name, f"{finding} ({written(sizes)})")
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


PROBE: Table = (("odd sizes", _odd_sizes),)
SMOKE: Table = (("smoke", _smoke),)
FULL: Table = (
    ("distributions", _distributions),
    ("sizes", _other_sizes),
    ("scalars", _scalars),
    ("special values", _special),
    ("determinism", _repeats),
    ("sanitizers", _sanitizers),
)
