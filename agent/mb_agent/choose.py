"""Choose what to try next. A policy only proposes: verification and measurement are the same for all.

The built-in policy needs no language model. It first replays whole winning chains that the knowledge base
holds for the nearest state, then draws actions by Thompson sampling on the logarithm of the speed-up; an
improved variant becomes a parent, with a beam of two. A quarter of its choices ignore what was learned
elsewhere, because what won on one kernel or device may lose on another.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from mb_agent.memory import Advice
from mb_targets.model import Action, Proposal, Variant

BEAM = 2
COLD = 0.25
# After so many choices without gain, this share of them goes back on an action of the best chain.
REVISE_AFTER = 4
REVISED = 0.5
# A log gain this small is none.
NOTHING = 0.01
# Spread of an untried action's log gain about the expected one, and of one measurement about the truth.
PRIOR_SPREAD = 0.35
NOISE = 0.15
# A refused attempt counts as this log gain: half the speed.
FAILED = math.log(0.5)


@dataclass(slots=True)
class Node:
    """A variant that compared equal and was timed; a parent for further actions.

    Attributes:
        variant: The variant; the original at the root.
        gain: Estimated log speed-up over the original.
        proposals: What may be applied to it.
        tried: Indices of the proposals already chosen.
    """

    variant: Variant
    gain: float
    proposals: Sequence[Proposal]
    tried: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Choice:
    """What to try: actions to apply to a parent, one after the other.

    Attributes:
        parent: Where to start.
        actions: What to apply, in order.
        expected: The speed-up over the parent that is expected.
        reason: Why, for people.
        planted: A finished variant instead of actions.
    """

    parent: Node
    actions: tuple[Action, ...]
    expected: float
    reason: str
    planted: Variant | None = None


@dataclass(frozen=True, slots=True)
class Learned:
    """What came of a choice: its log speed-up over the parent, None where it was refused or did not apply."""

    choice: Choice
    gain: float | None
    applicable: bool = True


class Policy(Protocol):
    """A search policy."""

    def next(self, nodes: Sequence[Node]) -> Choice | None:
        """Give the next thing to try; None when there is nothing left.

        Args:
            nodes: All variants so far, the root first.
        """
        ...

    def learn(self, learned: Learned) -> None:
        """Take in what came of a choice."""
        ...


@dataclass(slots=True)
class _Arm:
    """What this job has seen of an action, as a normal distribution of its log gain."""

    mean: float
    precision: float

    def update(self, gain: float) -> None:
        weight = 1 / NOISE**2
        self.mean = (self.mean * self.precision + gain * weight) / (self.precision + weight)
        self.precision += weight


class BuiltIn:
    """The built-in policy.

    Args:
        advice: What the knowledge base says of this state.
        rng: Source of every draw.
    """

    def __init__(self, advice: Advice, rng: random.Random) -> None:
        self._advice = advice
        self._rng = rng
        self._elites = list(advice.elites)
        self._seen: dict[str, list[float]] = {}
        self._chains: set[tuple[Action, ...]] = set()
        self._best = 0.0
        self._stale = 0

    def next(self, nodes: Sequence[Node]) -> Choice | None:
        """Replay elites, then sample an action of a node in the beam."""
        if self._elites:
            chain, gain = self._elites.pop(0)
            return Choice(nodes[0], chain, gain, "won before in the nearest state")
        best = max(nodes, key=lambda n: n.gain)
        self._stale = 0 if best.gain > self._best + NOTHING else self._stale + 1
        self._best = max(self._best, best.gain)
        if self._stale >= REVISE_AFTER and self._rng.random() < REVISED:
            revised = self._revise(best, nodes)
            if revised is not None:
                return revised
        cold = self._rng.random() < COLD
        open_nodes = [n for n in beam(nodes) if self._open(n, cold)]
        if not open_nodes:
            open_nodes = [n for n in sorted(nodes, key=lambda n: -n.gain) if self._open(n, cold)][:1]
        if not open_nodes:
            return self._revise(best, nodes)
        _, node, index = max(
            ((self._draw(n, n.proposals[i], cold), n, i) for n in open_nodes for i in self._open(n, cold)),
            key=lambda scored: scored[0],
        )
        node.tried.add(index)
        proposal = node.proposals[index]
        reason = f"{proposal.reason} (cold draw)" if cold else proposal.reason
        return Choice(node, (proposal.action,), proposal.expected, reason)

    def learn(self, learned: Learned) -> None:
        """Credit the last action with its step; what could not be applied says nothing."""
        if not learned.applicable or len(learned.choice.actions) != 1:
            return
        gain = FAILED if learned.gain is None else learned.gain
        self._seen.setdefault(str(learned.choice.actions[-1]), []).append(gain)

    def _revise(self, best: Node, nodes: Sequence[Node]) -> Choice | None:
        """Go back on one action of the best chain: leave it out, or give it other parameters."""
        known = {p.action for n in nodes for p in n.proposals}
        chain = best.variant.chain
        revised: list[tuple[Action, ...]] = []
        for i, action in enumerate(chain):
            others = sorted((a for a in known if _sibling(a, action)), key=str)
            revised += [(*chain[:i], *new, *chain[i + 1 :]) for new in [(), *((a,) for a in others)]]
        fresh = [c for c in revised if c and c not in self._chains]
        if not fresh:
            return None
        chosen = self._rng.choice(fresh)
        self._chains.add(chosen)
        return Choice(nodes[0], chosen, math.exp(best.gain), "the best so far with one action changed")

    def _open(self, node: Node, cold: bool) -> list[int]:
        return [
            i
            for i, p in enumerate(node.proposals)
            if i not in node.tried and (cold or not self._advice.vetoes(p.action))
        ]

    def _draw(self, node: Node, proposal: Proposal, cold: bool) -> float:
        arm = self._arm(proposal, cold)
        return node.gain + self._rng.gauss(arm.mean, arm.precision**-0.5)

    def _arm(self, proposal: Proposal, cold: bool) -> _Arm:
        arm = _Arm(math.log(max(proposal.expected, 1e-3)), 1 / PRIOR_SPREAD**2)
        known = None if cold else self._advice.value(proposal.action)
        if known is not None:
            arm = _Arm(known.mean, 1 / max(known.spread, NOISE) ** 2)
        for gain in self._seen.get(str(proposal.action), []):
            arm.update(gain)
        return arm


def _sibling(a: Action, b: Action) -> bool:
    """Tell whether two actions are the same one on the same thing with other numbers."""
    same = a.id == b.id and len(a.parameters) == len(b.parameters) and a != b
    return same and all(x == y for x, y in zip(a.parameters, b.parameters, strict=True) if not x.isdigit())


def beam(nodes: Sequence[Node]) -> list[Node]:
    """Give the best node and the best that keeps the launch; where they are one, also the runner-up."""
    ranked = sorted(nodes, key=lambda n: -n.gain)
    keeping = next(n for n in ranked if n.variant.launch is None)
    chosen = list(dict.fromkeys(map(id, [ranked[0], keeping, *ranked])))[:BEAM]
    by_id = {id(n): n for n in ranked}
    return [by_id[i] for i in chosen]


MakePolicy = Callable[[Advice, random.Random], Policy]

POLICIES: Mapping[str, MakePolicy] = MappingProxyType({"built-in": BuiltIn})
