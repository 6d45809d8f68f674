"""Choose the sizes that a kernel is verified and timed at.

``home`` is the user's own size. ``screen`` is where candidates are timed while the search runs: home, or a
smaller size where one launch of the original takes too long. ``small`` is where many inputs are cheap.
``tries`` are the odd ones that hard-coded shapes, dropped tails and missing guards do not survive.
``simulated`` are those at which a simulator some thousand times slower than the device still ends soon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mb_targets import expression
from mb_targets.concrete import sizes_to_try
from mb_targets.model import LaunchSpec

Sizes: TypeAlias = Mapping[str, float]

SCREEN_NS = 20e6
TRIED_NS = 5e6
SMALL_NS, SMALL_BYTES = 1e6, 1 << 21
SIMULATED_NS, SIMULATED_BYTES = 2.5e5, 1 << 18


@dataclass(frozen=True, slots=True)
class Cost:
    """What one launch of the original costs: nanoseconds, and the bytes of its buffers."""

    ns: float
    buffer_bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The sizes of one kernel; each maps the launch's symbols to values."""

    home: Sizes
    screen: Sizes
    small: Sizes
    tries: tuple[Sizes, ...]
    simulated: tuple[Sizes, ...]


def plan(spec: LaunchSpec, cost: Callable[[Sizes], Cost]) -> Plan:
    """Choose the sizes by what the original costs at them, measured."""
    home = {s.name: s.value for s in spec.symbols}
    known: dict[tuple[tuple[str, float], ...], Cost] = {}

    def fits(sizes: Sizes, ns: float, most_bytes: float = float("inf")) -> bool:
        key = tuple(sorted(sizes.items()))
        if key not in known:
            known[key] = cost(sizes)
        return known[key].ns <= ns and known[key].buffer_bytes <= most_bytes

    screen = shrunk(spec, home, lambda sizes: fits(sizes, SCREEN_NS))
    small = shrunk(spec, screen, lambda sizes: fits(sizes, SMALL_NS, SMALL_BYTES))
    regular = shrunk(spec, small, lambda sizes: fits(sizes, SIMULATED_NS, SIMULATED_BYTES))
    tries = [dict(shrunk(spec, sizes, lambda s: fits(s, TRIED_NS), odd=True)) for sizes in sizes_to_try(spec)]
    tries = [sizes for number, sizes in enumerate(tries) if sizes not in tries[:number]]
    odd = [s for s in reversed(tries) if s != regular and fits(s, SIMULATED_NS, SIMULATED_BYTES)]
    return Plan(home, screen, small, tuple(tries), (regular, *odd))


def shrunk(spec: LaunchSpec, sizes: Sizes, fits: Callable[[Sizes], bool], *, odd: bool = False) -> Sizes:
    """Halve the largest size again and again until one fits, or nothing can be halved."""
    current = sizes
    while not fits(current):
        smaller = next(_halved(spec, current, odd), None)
        if smaller is None:
            break
        current = smaller
    return current


def _halved(spec: LaunchSpec, sizes: Sizes, odd: bool) -> Iterator[dict[str, float]]:
    """Halve one symbol that may be halved, the largest first."""
    groups = {name for text in spec.local_size or () for name in expression.names(text)}
    for symbol in sorted(spec.symbols, key=lambda s: -sizes[s.name]):
        value = sizes[symbol.name]
        if value != int(value) or value < 16 or symbol.name in groups:
            continue
        half = int(value) // 2 // symbol.multiple * symbol.multiple
        half += odd and symbol.multiple == 1 and half % 2 == 0
        if half >= max(symbol.low, 8):
            yield {**sizes, symbol.name: half}
