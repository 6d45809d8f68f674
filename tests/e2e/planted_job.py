"""The real job with a policy that proposes wrong variants, one after the other, and then stops."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import planted

from mb_agent import events
from mb_agent.choose import Choice, Learned, Node
from mb_agent.job import Log
from mb_agent.optimize import Optimization
from mb_targets.model import Action, Variant


class Planting:
    """Proposes every wrong variant of a kernel, each as an action named for what is wrong."""

    def __init__(self, kernel: str) -> None:
        text, bodies = {
            "neighbours": (planted.NEIGHBOURS, planted.WRONG_NEIGHBOURS),
            "row_total": (planted.ROW_TOTAL, planted.WRONG_ROW_TOTAL),
        }[kernel]
        self._left = [
            Variant(text % body, kernel, (Action("planted", (wrong,)),))
            for wrong, (body, _) in bodies.items()
        ]

    def next(self, nodes: Sequence[Node]) -> Choice | None:
        """Propose the next one."""
        if not self._left:
            return None
        variant = self._left.pop(0)
        return Choice(nodes[0], variant.chain, 2.0, "planted", variant)

    def learn(self, learned: Learned) -> None:
        """Learn nothing."""


def main(folder: Path) -> None:
    request = events.read_request(folder)
    log = Log(folder, lambda: os._exit(1))
    policies = {"built-in": lambda *_: Planting(request.kernel.name)}
    Optimization(request, folder, log, policies=policies, locks=folder / "locks").run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
