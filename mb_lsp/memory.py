"""What the server asks of the knowledge base: never raises, never writes, says once what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from mb_kb.errors import KnowledgeError
from mb_kb.knowledge import KnowledgeBase, open_base
from mb_kb.views import SimilarKernel
from mb_lsp.annotate import Recalled
from mb_targets import registry
from mb_targets.model import Kernel

T = TypeVar("T")

SIMILAR = 4  # similar kernels shown
REMEMBERED = 4096  # kernels whose features are kept


class Knowledge:
    """The knowledge base of one session, opened when first asked for and only where there is one.

    Args:
        folder: Its folder.
        problem: Takes a sentence for the user; each is given once.
    """

    def __init__(self, folder: Path, problem: Callable[[str], None]) -> None:
        self._folder = folder
        self._problem = problem
        self._told: set[str] = set()
        self._features: dict[str, tuple[int, ...]] = {}

    def of(self, kernel: Kernel) -> Recalled:
        """Say what is known of a kernel: look-ups only. Similar kernels need one call of ``warm`` before."""
        base = self._base()
        if base is None:
            return Recalled()
        past = self._ask(lambda: base.past(kernel.identity), None)
        features = self._features.get(kernel.identity)
        if features is None:
            return Recalled(past)
        return Recalled(past, self._similar(base, kernel, features))

    def warm(self, kernel: Kernel) -> bool:
        """Look for similar kernels, which takes milliseconds the first time.

        Returns:
            False when there was nothing to do.
        """
        base = self._base()
        if base is None or kernel.identity in self._features:
            return False
        if len(self._features) >= REMEMBERED:
            self._features.clear()
        features = tuple(registry.load(kernel.target).features(kernel))
        self._features[kernel.identity] = features
        self._similar(base, kernel, features)
        return True

    def _similar(
        self, base: KnowledgeBase, kernel: Kernel, features: tuple[int, ...]
    ) -> tuple[SimilarKernel, ...]:
        nothing: list[SimilarKernel] = []
        return tuple(
            self._ask(
                lambda: base.similar(features, SIMILAR, target=kernel.target, but=kernel.identity), nothing
            )
        )

    def _base(self) -> KnowledgeBase | None:
        if not self._folder.is_dir():
            return None
        base = self._ask(lambda: open_base(self._folder), None)
        for notice in base.notices if base else ():
            self._tell(notice)
        return base

    def _ask(self, work: Callable[[], T], otherwise: T) -> T:
        try:
            return work()
        except KnowledgeError as error:
            self._tell(str(error))
            return otherwise

    def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._problem(sentence)
