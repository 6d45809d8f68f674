"""The bench of the knowledge base fills and asks a real one."""

from __future__ import annotations

from pathlib import Path

from mb_kb.knowledge import open_base
from mb_lsp import bench_kb


def test_a_filled_base_agrees_with_its_recount(tmp_path: Path) -> None:
    bench_kb.populate(tmp_path, 600)
    base = open_base(tmp_path)
    assert (base.stats().outcomes, base.verify().problems) == (600, ())
    base.close()


def test_every_question_is_asked_and_timed(tmp_path: Path) -> None:
    bench_kb.populate(tmp_path, 600)
    figures = bench_kb.measure(tmp_path)
    open_base(tmp_path).close()
    assert (figures.outcomes, figures.kernels) == (600, 12)
    assert min(figures.hover_p50, figures.actions_p50, figures.record_p50) > 0
