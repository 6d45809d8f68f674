"""Estimate what an action is worth in a state from what it did there and in coarser states.

Every outcome counts once, at the finest level that it shares with the state asked about. From the
coarsest level down, with n outcomes of mean m at a level that the next finer one does not hold,

    estimate = (n * m + k * coarser) / (n + k),    k = min(trust of the level, weight of the coarser estimate)

and the weight becomes n + k. So a coarser estimate, however many outcomes are behind it, is worth at most
``trust`` outcomes of the finer level: 2 between vendors, 4 between devices of one vendor. The start is
"no gain" with the weight of one outcome. Second moments and the share of attempts that passed are blended
in the same way.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from mb_kb.tally import UNIT, Aggregate
from mb_kb.views import ActionValue
from mb_targets.model import Action

TRUST = (1, 2, 4, 4, 4, 2, 4)  # one a level, coarsest first
PRIOR_DEVIATION = 0.3  # of the logarithm of an untried action's effect: most lie between 0.74 and 1.35
SMALLEST_DEVIATION = 0.02  # a measurement's own noise; no estimate is surer than that


def blend(rows: Sequence[Aggregate | None]) -> ActionValue:
    """Blend one action's rows, one a level, coarsest first; None from the level on where it was not tried."""
    mean, second, weight = 0.0, PRIOR_DEVIATION**2, 1.0
    success, tries = 0.5, 1.0
    for level, (row, trust) in enumerate(zip(rows, TRUST, strict=True)):
        if row is None:
            break
        finer = rows[level + 1] if level + 1 < len(rows) else None
        n, total, squares = row.measured, row.total, row.squares
        passed, tried = _passed(row), row.tried
        if finer is not None:
            n, total, squares = n - finer.measured, total - finer.total, squares - finer.squares
            passed, tried = passed - _passed(finer), tried - finer.tried
        k = min(trust, weight)
        weight = n + k
        mean = (total / UNIT + k * mean) / weight
        second = (squares / UNIT**2 + k * second) / weight
        k = min(trust, tries)
        tries = tried + k
        success = (passed + k * success) / tries
    spread = math.sqrt(max(0.0, second - mean * mean) / weight)
    return _value(rows, mean, max(spread, SMALLEST_DEVIATION), success)


def _value(rows: Sequence[Aggregate | None], mean: float, spread: float, success: float) -> ActionValue:
    widest, exact = rows[0], rows[-1]
    if widest is None:
        raise ValueError("an action that was never tried has no value")
    return ActionValue(
        Action(widest.action, widest.parameters),
        mean,
        spread,
        success,
        exact.tried if exact else 0,
        exact.verified if exact else 0,
        widest.tried,
        widest.best,
        tuple(Counter(widest.failures).most_common()),
    )


def _passed(row: Aggregate) -> int:
    return row.tried - sum(row.failures.values())
