"""Choose the sizes that a kernel is verified and timed at.

``home`` is the user's own size. ``screen`` is where candidates are timed while the search runs: home, or a
smaller size where one launch of the original takes too long. ``small`` is where many inputs are cheap.
``tries`` are the odd ones that hard-coded shapes, dropped tails and missing guards do not survive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from mb_agent.inputs import Fill
from mb_agent.oracle import Oracle, Sizes
from mb_targets import expression
from mb_targets.concrete import concretize, sizes_to_try, work
from mb_targets.errors import TargetError
from mb_targets.model import Kernel, LaunchSpec, Variant
from mb_targets.protocol import Launch

# In units of ``concrete.work``, about inner-loop steps.
SMALL_WORK = 1 << 18
SANITIZED_WORK = 1 << 16
SCREEN_NS = 20e6


@dataclass(frozen=True, slots=True)
class Plan:
    """The sizes of one kernel; each maps the launch's symbols to values."""

    home: Sizes
    screen: Sizes
    small: Sizes
    tries: tuple[Sizes, ...]


def plan(spec: LaunchSpec) -> Plan:
    """Choose sizes before anything has run; ``screened`` then settles the one to time at."""
    home = {s.name: s.value for s in spec.symbols}
    small = shrunk(spec, home, lambda sizes: work(spec, sizes) <= SMALL_WORK)
    return Plan(home, home, small, tuple(sizes_to_try(spec)))


def screened(plan: Plan, kernel: Kernel, spec: LaunchSpec, launch_ns: Callable[[Launch], float]) -> Plan:
    """Settle the size to time at, given how long the original takes at a launch."""
    screen = shrunk(
        spec, plan.home, lambda sizes: launch_ns(concretize(kernel, spec, sizes, None)) <= SCREEN_NS
    )
    return replace(plan, screen=screen)


def shrunk(spec: LaunchSpec, sizes: Sizes, fits: Callable[[Sizes], bool]) -> Sizes:
    """Halve the largest size again and again until one fits, or nothing can be halved."""
    current: Sizes = sizes
    while not fits(current):
        smaller = _halved(spec, current)
        if smaller is None:
            break
        current = smaller
    return current


def small_enough(oracle: Oracle, plan: Plan, variant: Variant) -> Iterator[Sizes]:
    """Give sizes at which a slow simulator still ends soon: a regular one and the largest odd one."""
    spec = oracle.spec
    yield shrunk(spec, plan.home, lambda sizes: work(spec, sizes) <= SANITIZED_WORK)
    for sizes in reversed(plan.tries):
        try:
            oracle.launch(sizes, Fill("normal", 0), variant.launch)
        except TargetError:
            continue
        if work(spec, sizes) <= SANITIZED_WORK:
            yield sizes
            return


def _halved(spec: LaunchSpec, sizes: Mapping[str, float]) -> dict[str, float] | None:
    """Halve the largest symbol that may be halved; None when there is none."""
    groups = {name for text in spec.local_size or () for name in expression.names(text)}
    for symbol in sorted(spec.symbols, key=lambda s: -sizes[s.name]):
        value = sizes[symbol.name]
        if value != int(value) or value < 16 or symbol.name in groups:
            continue
        half = int(value) // 2 // symbol.multiple * symbol.multiple
        if half >= max(symbol.low, 8):
            return {**sizes, symbol.name: half}
    return None
