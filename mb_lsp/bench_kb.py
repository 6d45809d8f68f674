"""The knowledge base at scale: fill one with made-up outcomes, and time what a hover asks of it."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from typing import TypeVar

from mb_kb.knowledge import KnowledgeBase, entry_of, open_base
from mb_targets import registry
from mb_targets.model import Action, Kernel, State, digest
from mb_targets.outcome import Check, Level, Measurement, Outcome, Provenance, Speedup, Verdict

OUTCOMES_A_KERNEL = 50
KERNELS_A_WORK = 16
DEVICES_A_WORK = 4
KERNELS_SHOWN = 200  # kernels of the documents that are open
QUESTIONS = 2000
JOBS = 50
BATCH = 100_000  # outcomes in one transaction

Q = TypeVar("Q")
_FAMILIES = ("map", "reduction", "row statistics", "transpose", "stencil", "contraction", "scan", "gather")
_DEVICES = tuple(
    f"{kind}-{vendor}-{model}"
    for kind, vendor in (("cpu", "amd"), ("cpu", "intel"), ("gpu", "nvidia"), ("gpu", "qualcomm"))
    for model in ("one", "two", "three", "four")
)
_FAILURES = ("build", "values", "race", "bounds")


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured: CPU time of one thread, in microseconds unless the name says otherwise.

    Attributes:
        open_ms: Opening the file when none of its pages is in memory.
        load_ms: Reading all vectors for the first question about similar kernels.
        lens_p50: The first look at a kernel's past, from the disk; what it read is kept in short.
        similar_p50: The first question for kernels similar to one, which looks at all of them.
        cold_hover_p50: A kernel's past, four similar ones and the winners of its state, all asked for the
            first time, with no page in memory.
        hover_p50: The same, after lens and similar.
        actions_p50: The value of every action in a state.
        record_p50: Recording one outcome, on the disk.
    """

    outcomes: int
    kernels: int
    file_mb: float
    open_ms: float
    load_ms: float
    lens_p50: float
    lens_p99: float
    similar_p50: float
    similar_p99: float
    cold_hover_p50: float
    cold_hover_p99: float
    hover_p50: float
    hover_p99: float
    actions_p50: float
    elites_p50: float
    record_p50: float


def populate(folder: Path, outcomes: int, seed: int = 1, kernels: Sequence[Kernel] = ()) -> float:
    """Fill a base with made-up outcomes, the first of them for ``kernels``.

    Returns:
        How many were added in a second of CPU time, making them apart.
    """
    base = open_base(folder)
    draw = random.Random(seed)
    spent = 0.0
    made = _made(outcomes, draw, kernels)
    while batch := list(islice(made, BATCH)):
        start = time.process_time()
        base.add([entry_of(o, features) for o, features in batch], seconds=30)
        spent += time.process_time() - start
    base.close()
    return outcomes / spent


def measure(folder: Path, seed: int = 2, kernels: Sequence[Kernel] = ()) -> Figures:
    """Ask a base, filled for ``kernels``, what an editor and a job ask, kernels drawn as attempts are."""
    open_base(folder).close()
    _forget(folder)
    opened = _timed(lambda: open_base(folder))
    base = open_base(folder)
    stats = base.stats()
    loaded = _timed(lambda: base.similar([1] * 64, 1))
    draw = random.Random(seed)
    subjects = _subjects(stats.kernels, kernels)
    shown = draw.choices(subjects, cum_weights=_weights(len(subjects)), k=KERNELS_SHOWN)
    cold = _cold(folder, list(dict.fromkeys(shown)))
    base = open_base(folder)
    base.similar([1] * 64, 1)
    lens = _costs(shown, lambda q: base.past(q.identity))
    similar = _costs(shown, lambda q: _similar(base, q))
    _costs(shown, lambda q: base.winners(q.state))  # so that the hovers find their pages in memory
    hover = _costs(draw.choices(shown, k=QUESTIONS), lambda q: _hover(base, q))
    actions = _costs(shown[:JOBS], lambda q: base.actions(q.state))
    elites = _costs(shown[:JOBS], lambda q: base.elites(q.state, q.features, 4, q.identity))
    fresh = [_outcome(q, time.time() + n, draw) for n, q in enumerate(shown[:JOBS])]
    recorded = _costs(fresh, base.record)
    return Figures(
        outcomes=stats.outcomes,
        kernels=stats.kernels,
        file_mb=stats.file_bytes / 1e6,
        open_ms=opened / 1e3,
        load_ms=loaded / 1e3,
        lens_p50=_quantile(lens, 0.5),
        lens_p99=_quantile(lens, 0.99),
        similar_p50=_quantile(similar, 0.5),
        similar_p99=_quantile(similar, 0.99),
        cold_hover_p50=_quantile(cold, 0.5),
        cold_hover_p99=_quantile(cold, 0.99),
        hover_p50=_quantile(hover, 0.5),
        hover_p99=_quantile(hover, 0.99),
        actions_p50=_quantile(actions, 0.5),
        elites_p50=_quantile(elites, 0.5),
        record_p50=_quantile(recorded, 0.5),
    )


@dataclass(frozen=True, slots=True)
class _Subject:
    """A kernel to ask about."""

    identity: str
    state: State
    features: tuple[int, ...]


def _similar(base: KnowledgeBase, q: _Subject) -> None:
    base.similar(q.features, 4, but=q.identity)


def _cold(folder: Path, subjects: list[_Subject]) -> list[float]:
    """Hover each kernel for the first time in a base just opened, which has read its vectors and no more."""
    open_base(folder).close()
    _forget(folder)
    base = open_base(folder)
    base.similar([1] * 64, 1)
    costs = _costs(subjects, lambda q: _hover(base, q))
    base.close()
    _forget(folder)
    return costs


def _hover(base: KnowledgeBase, q: _Subject) -> None:
    base.past(q.identity)
    _similar(base, q)
    base.winners(q.state)


def _timed(work: Callable[[], object]) -> float:
    start = time.thread_time()
    work()
    return (time.thread_time() - start) * 1e6


def _costs(questions: Iterable[Q], ask: Callable[[Q], object]) -> list[float]:
    return sorted(_timed(partial(ask, q)) for q in questions)


def _quantile(costs: list[float], share: float) -> float:
    return costs[int(share * (len(costs) - 1))]


def _forget(folder: Path) -> None:
    """Drop the files' pages from memory, where the system lets us."""
    if sys.platform == "linux":
        for path in folder.glob("*.lmdb"):
            with path.open("rb") as f:
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _made(
    outcomes: int, draw: random.Random, kernels: Sequence[Kernel]
) -> Iterator[tuple[Outcome, tuple[int, ...]]]:
    subjects = _subjects(max(1, len(kernels), outcomes // OUTCOMES_A_KERNEL), kernels)
    weights = _weights(len(subjects))
    for n in range(outcomes):
        # The first attempts go round all kernels, so that each has some.
        q = subjects[n] if n < len(subjects) else draw.choices(subjects, cum_weights=weights)[0]
        yield _outcome(q, 1.7e9 + n, draw), q.features


def _weights(count: int) -> list[float]:
    """Few kernels draw most attempts."""
    return list(accumulate((n + 1) ** -0.8 for n in range(count)))


def _subjects(count: int, kernels: Sequence[Kernel]) -> list[_Subject]:
    """Make kernels, a few of a kind: alike in their counts, doing the same work on some devices.

    The first, which draw most attempts, are ``kernels``.
    """
    draw = random.Random(7)
    works = [_state(draw) for _ in range(max(1, count // KERNELS_A_WORK))]
    made = []
    for n in range(count):
        number = n % len(works)
        kind = random.Random(number)
        counts = (int(kind.paretovariate(0.7)) - 1 + draw.choice((-1, 0, 0, 0, 1)) for _ in range(64))
        state = replace(works[number], device=draw.choice(kind.sample(_DEVICES, DEVICES_A_WORK)))
        made.append(_Subject(digest("kernel", str(n)), state, tuple(min(255, max(0, c)) for c in counts)))
    real = [(k.identity, tuple(registry.load(k.target).features(k))) for k in kernels[:count]]
    named = [replace(q, identity=i, features=f) for q, (i, f) in zip(made, real, strict=False)]
    return [*named, *made[len(named) :]]


def _state(draw: random.Random) -> State:
    return State(
        draw.choice(_FAMILIES),
        tuple(sorted(draw.sample(("unit", "strided", "broadcast", "gather"), 2))),
        draw.choice(("f32", "f32", "f16", "i32", "f64")),
        draw.randrange(4, 14),
        draw.randrange(-4, 8),
        draw.choice(("memory", "compute", "latency", "math")),
        "opencl",
        draw.choice(_DEVICES),
    )


def _outcome(q: _Subject, created: float, draw: random.Random) -> Outcome:
    action = Action(f"action{draw.randrange(20)}", (str(1 << draw.randrange(4)),))
    chain = (*(Action("earlier", (str(n),)) for n in range(draw.randrange(3))), action)
    failed = draw.random() < 0.3
    failure = draw.choice(_FAILURES) if failed else ""
    level = Level.NONE if failed else draw.choice((Level.VALUES, Level.SANITIZED))
    checks = (Check("smoke", not failed, 0.01), Check("values", not failed, 0.1, "12 of 12 inputs"))
    ratio = draw.lognormvariate(0.3, 0.5)
    step = Speedup(ratio, ratio * 0.97, ratio * 1.03)
    total = Measurement("cpu", step, ratio, 1e6 * ratio, 1e6, 20, q.state.device, "turn about, fresh buffers")
    variant = f"{draw.getrandbits(128):032x}"
    return Outcome(
        q.state,
        action,
        chain,
        q.identity,
        f"kernel_{q.identity[:6]}",
        variant,
        Verdict(level, not failed, checks, failure, basis="error of the original"),
        Provenance(q.identity, variant, q.state.device, "driver 1", "compiler 1", ("-O3",), created, "bench"),
        None if failed else step,
        None if failed else total,
        1.2,
        "expected 1.20x",
        f"needs condition {draw.randrange(5)}" if failed else "",
    )
