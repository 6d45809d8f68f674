"""The knowledge base at scale: fill one with made-up outcomes, and time what a hover asks of it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from typing import TypeVar

from mb_kb.knowledge import KnowledgeBase, entry_of, open_base
from mb_lsp.bench_server import Figure
from mb_targets.model import (
    Action,
    Check,
    Level,
    Measurement,
    Outcome,
    Provenance,
    Speedup,
    State,
    Verdict,
    digest,
)

OUTCOMES_A_KERNEL = 50
KERNELS_A_STATE = 4
KERNELS_SHOWN = 200  # kernels of the documents that are open
QUESTIONS = 2000
BATCH = 20_000  # outcomes in one transaction

Q = TypeVar("Q")
_FAMILIES = ("map", "reduction", "row statistics", "transpose", "stencil", "contraction", "scan", "gather")
_DEVICES = tuple(
    f"{kind}-{vendor}-{model}"
    for kind, vendor in (("cpu", "amd"), ("cpu", "intel"), ("gpu", "nvidia"), ("gpu", "qualcomm"))
    for model in ("one", "two", "three", "four")
)
_FAILURES = ("build", "values", "race", "bounds")


def populate(folder: Path, outcomes: int, seed: int = 1) -> float:
    """Fill a base with made-up outcomes; gives outcomes a second of CPU time, making them apart."""
    base = open_base(folder)
    draw = random.Random(seed)
    spent = 0.0
    made = _made(outcomes, draw)
    while batch := list(islice(made, BATCH)):
        start = time.process_time()
        base.add([entry_of(o, features) for o, features in batch], seconds=30)
        spent += time.process_time() - start
    return outcomes / spent


def figures(folder: Path, outcomes: int) -> Iterator[Figure]:
    """Fill a base with made-up outcomes and measure it: CPU time of this thread throughout."""
    if not folder.exists():
        yield Figure("knowledge base, bulk insert", populate(folder, outcomes), "outcomes/s")
        open_base(folder).close()
    yield from measure(folder)


def measure(folder: Path, seed: int = 2) -> Iterator[Figure]:
    """Ask a filled base what a hover asks, about kernels drawn as attempts are."""
    opened = _timed(lambda: open_base(folder))
    base = open_base(folder)
    stats = base.stats()
    size = f"{stats.outcomes} outcomes, {stats.kernels} kernels, {stats.file_bytes >> 20} MiB"
    yield Figure("knowledge base, open", opened / 1e3, "ms", 10, size)
    yield Figure("similar kernels, load", _timed(lambda: base.similar([1] * 64, 1)) / 1e3, "ms")
    draw = random.Random(seed)
    subjects = _subjects(stats.kernels)
    shown = draw.choices(subjects, cum_weights=_weights(len(subjects)), k=KERNELS_SHOWN)
    yield from _quantiles("similar kernels, first time", shown, lambda q: _similar(base, q), 5000)
    asked = draw.choices(shown, k=QUESTIONS)
    yield from _quantiles("knowledge of a hover", asked, lambda q: _hover(base, q), 250)
    yield from _quantiles("values of actions", shown[:50], lambda q: base.actions(q.state))
    yield from _quantiles("elites", shown[:50], lambda q: base.elites(q.state, q.features))
    fresh = [_outcome(q, time.time() + n, draw) for n, q in enumerate(shown[:50])]
    yield from _quantiles("record", fresh, base.record, 10_000)


@dataclass(frozen=True, slots=True)
class _Subject:
    """A kernel to ask about."""

    identity: str
    state: State
    features: tuple[int, ...]


def _similar(base: KnowledgeBase, q: _Subject) -> None:
    base.similar(q.features, 4, but=q.identity)


def _hover(base: KnowledgeBase, q: _Subject) -> None:
    base.past(q.identity)
    _similar(base, q)
    base.winners(q.state)


def _timed(work: Callable[[], object]) -> float:
    start = time.thread_time()
    work()
    return (time.thread_time() - start) * 1e6


def _quantiles(
    name: str, questions: Sequence[Q], ask: Callable[[Q], object], bar: float | None = None
) -> Iterator[Figure]:
    """Ask each question once; the bar, in microseconds, holds for the 99th percentile."""
    costs = sorted(_timed(partial(ask, q)) for q in questions)
    yield Figure(f"{name}, p50", costs[len(costs) // 2], "us", None, f"{len(costs)} times")
    yield Figure(f"{name}, p99", costs[int(0.99 * (len(costs) - 1))], "us", bar)


def _made(outcomes: int, draw: random.Random) -> Iterator[tuple[Outcome, tuple[int, ...]]]:
    subjects = _subjects(max(1, outcomes // OUTCOMES_A_KERNEL))
    weights = _weights(len(subjects))
    for n in range(outcomes):
        # The first attempts go round all kernels, so that each has some.
        q = subjects[n] if n < len(subjects) else draw.choices(subjects, cum_weights=weights)[0]
        yield _outcome(q, 1.7e9 + n, draw), q.features


def _weights(count: int) -> list[float]:
    """Few kernels draw most attempts."""
    return list(accumulate((n + 1) ** -0.8 for n in range(count)))


def _subjects(count: int) -> list[_Subject]:
    draw = random.Random(7)
    states = [_state(draw) for _ in range(max(1, count // KERNELS_A_STATE))]
    made = []
    for n in range(count):
        number = n % len(states)
        kin = random.Random(number)
        features = tuple(
            max(0, int(kin.paretovariate(0.7) - 1) + draw.choice((-1, 0, 0, 0, 1))) % 256 for _ in range(64)
        )
        made.append(_Subject(digest("kernel", str(n)), states[number], features))
    return made


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
