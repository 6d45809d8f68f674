"""What the knowledge base says of the state at hand, and the way outcomes get into it.

A knowledge base that cannot be read or written costs the job its memory and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mb_kb.errors import KnowledgeError
from mb_kb.knowledge import KnowledgeBase, open_base
from mb_targets.model import Action, State
from mb_targets.outcome import Outcome

ELITES = 4
# A failure seen once may be another kernel's; seen twice in this very state it stands.
CONVINCING = 2


@dataclass(frozen=True, slots=True)
class Value:
    """What an action brought before: the mean of its log gain, and how far the next may be from it."""

    mean: float
    spread: float


@dataclass(frozen=True, slots=True)
class Advice:
    """What is known before the search starts.

    Attributes:
        elites: Winning chains with the speed-up each had, the most fitting first.
        values: By action as written.
        constrained: Why an action is not to be tried, by action as written.
    """

    elites: Sequence[tuple[tuple[Action, ...], float]] = ()
    values: Mapping[str, Value] = field(default_factory=dict)
    constrained: Mapping[str, str] = field(default_factory=dict)

    def value(self, action: Action) -> Value | None:
        """Give what is known of an action."""
        return self.values.get(str(action))

    def vetoes(self, action: Action) -> bool:
        """Tell whether a constraint forbids an action here."""
        return str(action) in self.constrained


class Memory:
    """The job's access to the knowledge base.

    Args:
        folder: Where the base lies; empty to do without.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._problem = ""
        self._notices: tuple[str, ...] = ()
        self._base: KnowledgeBase | None = None
        if folder:
            try:
                self._base = open_base(Path(folder))
            except KnowledgeError as error:
                self._problem = self._unused(error)

    @property
    def problem(self) -> str:
        """What is wrong with the base and what that cost, in words; empty when nothing is."""
        notices = self._base.notices if self._base is not None else self._notices
        said = (self._problem, *(n.removesuffix(".") for n in notices if n not in self._problem))
        return "; ".join(dict.fromkeys(filter(None, said)))

    def advise(self, state: State, features: Sequence[int], identity: str) -> Advice:
        """Look up what is known of a state and of kernels like this one."""
        if self._base is None:
            return Advice()
        try:
            elites = self._base.elites(state, features, ELITES, identity)
            values = self._base.actions(state)
            constraints = self._base.constraints(state)
        except KnowledgeError as error:
            self._problem = self._unused(error)
            self.close()
            return Advice()
        return Advice(
            tuple((e.chain, e.speedup.value) for e in elites),
            {str(v.action): Value(v.estimate, v.deviation) for v in values},
            {
                str(c.action): c.condition
                for c in constraints
                if c.scope == "device" and c.count >= CONVINCING
            },
        )

    def record(self, outcome: Outcome, features: Sequence[int], source: str) -> None:
        """Keep an outcome, where there is a knowledge base."""
        if self._base is None:
            return
        try:
            self._base.record(outcome, features, source)
        except KnowledgeError as error:
            self._give_up(error)

    def close(self) -> None:
        """Close the base."""
        if self._base is not None:
            self._notices = self._base.notices
            self._base.close()
            self._base = None

    def _give_up(self, error: KnowledgeError) -> None:
        self._problem = f"nothing more was remembered in this job: {error}"
        self.close()

    def _unused(self, error: KnowledgeError) -> str:
        why = str(error).removeprefix(f"{self._folder}: ")
        return (
            f"the knowledge base at {self._folder} could not be used ({why}), "
            "so nothing was looked up or remembered"
        )
