"""Tell the world how a job fares: every event goes to its log, and to whoever started it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from mb_agent.budget import Spending
from mb_agent.events import Event, Progress
from mb_targets.outcome import Speedup

INTERVAL_S = 0.5


@dataclass(slots=True)
class Report:
    """Where events go.

    Attributes:
        emit: Takes each event as it happens.
        best: The best verified gain so far.
        aside: What is said with every stage: why all takes long.
    """

    emit: Callable[[Event], None]
    best: Speedup | None = None
    aside: str = ""
    now: Callable[[], float] = time.time
    clock: Callable[[], float] = time.monotonic
    _last: float = float("-inf")

    def progress(self, stage: str, spending: Spending, *, force: bool = False) -> None:
        """Say what the job is at, at most twice a second unless forced."""
        if not force and self.clock() - self._last < INTERVAL_S:
            return
        self._last = self.clock()
        stage += f" ({self.aside})" if self.aside else ""
        self.emit(Progress(self.now(), stage, spending.candidates, round(spending.share, 4), self.best))
