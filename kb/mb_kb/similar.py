"""Kernels that look alike, in pure Python: a coarse pass over all of them, an exact one over a few.

Counts are taken as logarithms, eight steps of them. Written as a thermometer (three steps are 0b111) a
vector is one integer, and the set bits of the exclusive or of two are the sum of the differences of all
steps: the coarse pass is two C-level calls a kernel. The nearest few hundred are then ranked by cosine.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import mul

from mb_kb import keys
from mb_kb.append import FEATURE, clamp, vector_row
from mb_kb.store import Store, Transaction

EXAMINED = 128  # kernels that the exact pass looks at
REMEMBERED = 512  # answers kept

STEPS = (1, 2, 3, 5, 9, 17, 33, 65)  # the count at which each step begins
_step = bytes(sum(count >= s for s in STEPS) for count in range(256))
_thermometer = bytes((1 << step) - 1 for step in _step)


@dataclass(slots=True)
class _Group:
    """The kernels of one target with vectors of one length, column by column."""

    identities: list[bytes] = field(default_factory=list)
    steps: list[bytes] = field(default_factory=list)
    sketches: list[int] = field(default_factory=list)
    norms: dict[int, float] = field(default_factory=dict)  # of those that were looked at

    def norm(self, number: int) -> float:
        """Give the length of a vector."""
        known = self.norms.get(number)
        if known is None:
            v = self.steps[number]
            known = self.norms[number] = math.sqrt(sum(map(mul, v, v)))
        return known


@dataclass(slots=True)
class _Answer:
    """The nearest kernels among the first ``examined`` of a group."""

    examined: int
    nearest: list[tuple[float, bytes]]


class Neighbours:
    """An index over the vectors of a store, kept in memory and read on as the store grows."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._opening = store.opening
        self._read = 0
        self._groups: dict[tuple[str, int], _Group] = {}
        self._answers: dict[tuple[str, bytes, int], _Answer] = {}

    def nearest(self, features: Sequence[int], limit: int, target: str) -> list[tuple[float, bytes]]:
        """Give the nearest kernels of a target as (cosine, identity key), nearest first.

        An answer is remembered, and later only compared with the vectors that came since.
        """
        with self._lock:
            return self._nearest(features, limit, target)

    def _nearest(self, features: Sequence[int], limit: int, target: str) -> list[tuple[float, bytes]]:
        self._store.read(self._read_on)
        steps = clamp(features).translate(_step)
        group = self._groups.get((target, len(steps)))
        if group is None or not any(steps):
            return []
        question = (target, steps, limit)
        answer = self._answers.pop(question, None) or _Answer(0, [])
        if answer.examined < len(group.sketches):
            answer = _Answer(len(group.sketches), _extend(answer, group, steps, limit))
        self._answers[question] = answer  # at the end: the oldest is dropped first
        if len(self._answers) > REMEMBERED:
            del self._answers[next(iter(self._answers))]
        return answer.nearest

    def _read_on(self, t: Transaction) -> None:
        if self._opening != self._store.opening:  # another file has taken its place
            self._opening, self._read = self._store.opening, 0
            self._groups.clear()
            self._answers.clear()
        c = t.cursor()
        if not c.set_range(keys.FEATURE + FEATURE.pack(self._read)):
            return
        for key, value in c.iternext():
            if not key.startswith(keys.FEATURE):
                return
            identity, target, vector = vector_row(value)
            group = self._groups.setdefault((target, len(vector)), _Group())
            group.identities.append(identity)
            group.steps.append(vector.translate(_step))
            group.sketches.append(int.from_bytes(vector.translate(_thermometer), "big"))
            self._read += 1


def _extend(answer: _Answer, group: _Group, steps: bytes, limit: int) -> list[tuple[float, bytes]]:
    numbers = _close(group, steps, answer.examined)
    length = math.sqrt(sum(map(mul, steps, steps)))
    found = list(answer.nearest)
    for n in numbers:
        norm = length * group.norm(n)
        if norm:
            found.append((sum(map(mul, steps, group.steps[n])) / norm, group.identities[n]))
    found.sort(key=lambda x: (-x[0], x[1]))
    return found[:limit]


def _close(group: _Group, steps: bytes, start: int) -> list[int]:
    """Give the numbers of the kernels whose sketches differ least, at least EXAMINED of them if there are."""
    sketches = group.sketches[start:] if start else group.sketches
    if len(sketches) <= EXAMINED:
        return list(range(start, start + len(sketches)))
    sketch = int.from_bytes(bytes((1 << s) - 1 for s in steps), "big")
    distances = list(map(int.bit_count, map(sketch.__xor__, sketches)))
    bound = _bound(Counter(distances))
    return [n for n, d in enumerate(distances, start) if d <= bound][: EXAMINED + EXAMINED // 2]


def _bound(counts: Counter[int]) -> int:
    """Give the smallest distance within which EXAMINED kernels lie."""
    within = 0
    for distance, count in sorted(counts.items()):
        within += count
        if within >= EXAMINED:
            return distance
    return max(counts)
