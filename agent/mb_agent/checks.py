"""The checks, in the order they are made: cheap ones first.

Each is a function that runs the candidate through a trial and yields what it found; one that finds something
wrong raises. A check of which nothing could be run is no pass: where the variant calls for it, it is yielded
as not made; where this kernel has no such case, it is only listed as unchecked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from mb_agent.errors import TimedOut, WorkerDied
from mb_agent.inputs import FLOATS, POISONS, Fill, has_floats
from mb_agent.oracle import Case, Oracle
from mb_agent.sizes import Sizes
from mb_agent.trial import Refused, Runner, Trial, written
from mb_targets import expression
from mb_targets.model import LaunchSpec
from mb_targets.outcome import Check
from mb_targets.protocol import GUARD_PAGES, Launch

SANITIZE_SECONDS = 40.0
# At how many sizes each memory and race check is made: a regular one and an odd one.
SIMULATIONS = 2

# Distributions whose values are special, and those of them for which an original may define no result.
SPECIAL = ("signed zeros", "subnormals", "minus infinity", "infinities", "not a number")
UNDEFINED = ("minus infinity", "infinities", "not a number")
INTEGER_ONLY = ("normal", "uniform", "negative", "large", "zeros", "ones")
FACTORS = (1.37, -0.61, 0.0)


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
    last = len(runner.plan.tries) - 1
    made = [
        written(runner.plan.tries[k]) for k in sorted({min(1, last), last} - {-1}) if _at(runner, trial, k)
    ]
    if made:
        yield Check("odd sizes", True, 0.0, f"equal at {'; '.join(made)}")
    else:
        trial.unchecked.append("odd sizes: none that applies")


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
    made = [
        f"{factor:g}"
        for k, factor in enumerate(FACTORS)
        if runner.attempt(trial, runner.plan.small, Fill("normal", trial.seed + 50 + k, factor), k % POISONS)
    ]
    if made:
        yield Check("scalars", True, 0.0, f"floating-point scalars x {', '.join(made)}")
    else:
        yield Check("scalars", None, 0.0, "the original runs with no other values of its scalars")


def _other_sizes(runner: Runner, trial: Trial) -> Iterator[Check]:
    """Odd sizes, small ones, and those that are no multiple of anything."""
    tries = runner.plan.tries
    if _tried_upward(runner.oracle.spec):
        trial.unchecked.append("sizes below zero")
    done = [written(sizes) for k, sizes in enumerate(tries) if _at(runner, trial, k)]
    if not done:
        trial.unchecked.append(
            "other sizes: it applies to none that was tried" if tries else "other sizes: the launch has none"
        )
        return
    skipped = len(tries) - len(done)
    yield Check("sizes", True, 0.0, f"{'; '.join(done)}" + (f" ({skipped} do not apply)" if skipped else ""))


def _tried_upward(spec: LaunchSpec) -> bool:
    """Tell whether a signed integer parameter takes a size that is tried from 0 or 1 on only."""
    extents = (a.extent for a in spec.arguments if a.role not in ("scalar", "local"))
    sizes = {name for text in (*spec.global_size, *extents) for name in expression.names(text)}
    upward = {s.name for s in spec.symbols if s.low in (0, 1)} & sizes
    signed = (a.extent for a in spec.arguments if a.role == "scalar" and a.dtype[0] == "i")
    return any(not upward.isdisjoint(expression.names(text)) for text in signed)


def _at(runner: Runner, trial: Trial, k: int) -> bool:
    """Run at the k-th other size."""
    fill = Fill(("normal", "integers")[k % 2], trial.seed + 100 + k)
    return runner.attempt(trial, runner.plan.tries[k], fill, k % POISONS)


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
    if made:
        yield Check("special values", True, 0.0, ", ".join(made))
    else:
        yield Check("special values", None, 0.0, "the original runs on none")


def _repeats(runner: Runner, trial: Trial) -> Iterator[Check]:
    """The same bytes twice, at two sizes; and what every run so far has watched."""
    made = [
        written(sizes)
        for k, sizes in enumerate((runner.plan.small, runner.plan.screen))
        if runner.run_twice(trial, sizes, Fill("normal", trial.seed + 1 if k == 0 else trial.seed))
    ]
    if made:
        found = f"two runs on the same inputs give the same bits at {'; '.join(dict.fromkeys(made))}"
        yield Check("determinism", True, 0.0, found)
    else:
        yield Check("determinism", None, 0.0, "it could not be run twice")
    yield _bounds(runner, trial)
    yield Check("inputs unchanged", True, 0.0, f"in {trial.runs} runs")


def _bounds(runner: Runner, trial: Trial) -> Check:
    """Say what the runs have shown of accesses outside a buffer; a device without guard pages sees writes."""
    if GUARD_PAGES not in runner.oracle.device.features:
        evidence = f"no write outside a buffer in {trial.runs} runs; reads are for Oclgrind to check"
        return Check("write fences", True, 0.0, evidence)
    evidence = f"no access outside a buffer in {trial.runs} runs"
    if trial.slack:
        evidence += f"; a read of at most {trial.slack} bytes past a buffer's end would not have been seen"
    return Check("guard pages", True, 0.0, evidence)


def _sanitizers(runner: Runner, trial: Trial) -> Iterator[Check]:
    """The memory and race checks that the variant's constructs, and the device, call for."""
    oracle, variant = runner.oracle, trial.candidate.variant
    guarded = GUARD_PAGES in oracle.device.features
    for name in oracle.target.sanitizers(oracle.kernel, variant, guarded):
        made: list[str] = []
        for sizes in runner.plan.simulated:
            if len(made) == SIMULATIONS or not _simulated(runner, trial, name, sizes, made):
                break
        if made and len(made) < SIMULATIONS:
            trial.unchecked.append(f"{name}: at one size only ({made[0]})")
        evidence = f"nothing found at {'; '.join(made)}" if made else "called for, but could not be made here"
        yield Check(name, True if made else None, 0.0, evidence)


def _simulated(runner: Runner, trial: Trial, name: str, sizes: Sizes, made: list[str]) -> bool:
    """Make one check at one size where it applies; False when there is no use in going on."""
    oracle = runner.oracle
    case = oracle.case(sizes, Fill("normal", trial.seed + 400))
    launch = None if isinstance(case, str) else runner.launch(trial, case)
    if isinstance(case, str) or launch is None or 0 in launch.global_size:
        return True
    finding = _sanitize(trial, name, oracle, launch, case)
    if finding:
        raise Refused(name, f"{finding} ({written(sizes)})")
    if finding is not None:
        made.append(written(sizes))
    return finding is not None


def _sanitize(trial: Trial, name: str, oracle: Oracle, launch: Launch, case: Case) -> str | None:
    """Run one check; one that ends its worker or is not done in time says nothing of the variant."""
    candidate = trial.candidate
    try:
        return candidate.side.sanitize(
            name, candidate.variant, oracle.spec.options, launch, case.shared(0), limit=SANITIZE_SECONDS
        )
    except (TimedOut, WorkerDied):
        return None


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
