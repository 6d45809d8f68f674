"""What a job may spend, and how much of it is gone."""

from __future__ import annotations

from collections.abc import Callable

from mb_agent.events import Budget


class Spending:
    """Counts candidates and the seconds of the job's own work; it is made once the device is ours.

    Args:
        budget: The limits.
        clock: Seconds that only grow.
        spent: Seconds that an earlier run of the job has used.
    """

    def __init__(self, budget: Budget, clock: Callable[[], float], spent: float = 0.0) -> None:
        self._budget = budget
        self._clock = clock
        self._started = clock()
        self._spent = spent
        self.candidates = 0

    @property
    def seconds(self) -> float:
        """Seconds charged so far."""
        return self._clock() - self._started + self._spent

    @property
    def share(self) -> float:
        """How much of the budget is gone, 0 to 1, by whichever limit is nearer."""
        by_time = self.seconds / self._budget.seconds if self._budget.seconds > 0 else 1.0
        by_count = self.candidates / self._budget.candidates if self._budget.candidates > 0 else 1.0
        return min(1.0, max(by_time, by_count))

    @property
    def left_s(self) -> float:
        """Seconds left."""
        return self._budget.seconds - self.seconds
