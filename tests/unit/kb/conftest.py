"""A knowledge base in a fresh folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mb_kb.knowledge import KnowledgeBase


@pytest.fixture
def base(tmp_path: Path) -> Iterator[KnowledgeBase]:
    made = KnowledgeBase(tmp_path / "knowledge")
    yield made
    made.close()
