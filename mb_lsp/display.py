"""Show a running job: a live panel on a terminal, plain lines elsewhere. Both write to standard error."""

from __future__ import annotations

import sys
import time
from collections import deque
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mb_agent import events
from mb_targets.outcome import Speedup

PLAIN_EVERY_SECONDS = 10.0


class Display(Protocol):
    """Something that shows a job's events; used as a context manager."""

    def __enter__(self) -> Self:
        """Begin to show."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop showing; the terminal is as it was."""
        ...

    def show(self, event: events.Event) -> None:
        """Take the job's next event."""
        ...


def open_display(kernel: str, budget: float, console: Console | None = None) -> Display:
    """Choose the live panel where standard error is a terminal that can draw it, else plain lines."""
    console = console or Console(stderr=True, highlight=False)
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveDisplay(kernel, budget, console)
    return PlainDisplay(kernel)


class Tally:
    """What has been seen of a job so far: the numbers that both displays show."""

    def __init__(self) -> None:
        self.device = ""
        self.stage = "starting"
        self.tried = 0
        self.refused = 0
        self.share = 0.0
        self.best: Speedup | None = None
        self.queued = 0
        self._seen: set[str] = set()
        self._refused: set[str] = set()
        self.recent: deque[tuple[str, str]] = deque(maxlen=4)

    def take(self, event: events.Event) -> None:
        """Count one event in."""
        match event:
            case events.Started():
                self.device = f"{event.device.name} ({event.device.key})"
            case events.Queued():
                self.queued = event.before
                self.stage = f"queued, {event.before} before" if event.before else "starting"
            case events.Progress():
                self.stage, self.share = event.stage, event.share
                self.tried = max(self.tried, event.tried)
                self.best = event.best or self.best
            case events.Tried():
                self._attempt(event)
            case events.Finished():
                self.tried, self.refused, self.share = event.tried, event.refused, 1.0
                self.stage = event.reason
            case events.Failed():
                self.stage = "failed"

    def _attempt(self, event: events.Tried) -> None:
        outcome = event.outcome
        # A finalist is tried again in a fresh process: each variant counts once.
        self._seen.add(event.variant.hash)
        self.tried = max(self.tried, len(self._seen))
        if outcome.verdict.refused:
            self._refused.add(event.variant.hash)
            self.refused = len(self._refused)
            self.recent.append((str(outcome.action), f"refused: {outcome.verdict.failure}"))
        elif outcome.total is not None:
            self.recent.append((str(outcome.action), f"{outcome.total.speedup.value:.2f}x"))
        elif outcome.step is not None:
            self.recent.append((str(outcome.action), f"{outcome.step.value:.2f}x its parent"))

    def count(self) -> str:
        """Say how many were tried and refused."""
        return f"{self.tried} tried, {self.refused} refused"


class LiveDisplay:
    """A small panel that redraws itself four times a second and is gone at the end."""

    def __init__(self, kernel: str, budget: float, console: Console) -> None:
        self._kernel = kernel
        self._budget = budget
        self._tally = Tally()
        self._begun = time.monotonic()
        self._live = Live(get_renderable=self._draw, console=console, transient=True, refresh_per_second=4)

    def __enter__(self) -> Self:
        """Begin to draw."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the panel away."""
        self._live.stop()

    def show(self, event: events.Event) -> None:
        """Count the event; it is drawn with the next frame."""
        self._tally.take(event)

    def _draw(self) -> RenderableType:
        tally = self._tally
        head = Text.assemble((f"{self._kernel}", "bold"), "  ", (tally.device, "dim"))
        bar = Table.grid(padding=(0, 2))
        elapsed = time.monotonic() - self._begun
        bar.add_row(
            ProgressBar(total=1.0, completed=tally.share, width=30),
            Text(f"{elapsed:.0f} s, budget {self._budget:.0f} s"),
            Text(tally.count()),
            Text(tally.stage, style="dim"),
        )
        best = Text("best so far  ")
        best.append(speedup_words(tally.best), style="bold green") if tally.best else best.append(
            "none yet", "dim"
        )
        recent = Table.grid(padding=(0, 2))
        for action, what in tally.recent:
            recent.add_row(Text("  " + action, style="dim"), Text(what, style=_style(what)))
        return Group(head, bar, best, recent)


class PlainDisplay:
    """One line when something happens, and one every ten seconds."""

    def __init__(self, kernel: str) -> None:
        self._kernel = kernel
        self._tally = Tally()
        self._last = time.monotonic()
        self._shown: Speedup | None = None

    def __enter__(self) -> Self:
        """Nothing to prepare."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to restore."""

    def show(self, event: events.Event) -> None:
        """Write a line where the event is worth one."""
        tally = self._tally
        tally.take(event)
        if isinstance(event, events.Started):
            self._say(f"started on {tally.device}")
        elif isinstance(event, events.Queued) and event.before:
            self._say(f"queued, {event.before} before")
        elif tally.best is not None and tally.best != self._shown:
            self._shown = tally.best
            self._say(f"best so far {speedup_words(tally.best)}; {tally.count()}")
        elif time.monotonic() - self._last > PLAIN_EVERY_SECONDS:
            self._say(f"{tally.stage}; {tally.count()}")

    def _say(self, words: str) -> None:
        self._last = time.monotonic()
        print(f"{self._kernel}: {words}", file=sys.stderr, flush=True)


def speedup_words(speedup: Speedup) -> str:
    """Write a speed-up with its interval: ``2.31x [2.25-2.36]``."""
    return str(speedup)


def _style(words: str) -> str:
    return "red" if words.startswith("refused") else "dim" if words.endswith("parent") else "green"
