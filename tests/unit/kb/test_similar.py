"""Kernels that look alike."""

from __future__ import annotations

import math
import random
from operator import mul
from pathlib import Path

import made_outcomes as made
import pytest

from mb_kb import similar
from mb_kb.knowledge import KnowledgeBase, entry_of
from mb_targets.model import digest


def vectors(count: int, seed: int = 1) -> list[list[int]]:
    """Make vectors in kinds of about ten, as kernels come."""
    draw = random.Random(seed)
    kinds = [[int(draw.paretovariate(0.8)) - 1 for _ in range(64)] for _ in range(max(1, count // 10))]
    return [
        [min(255, max(0, c + draw.choice((-1, 0, 0, 1)))) for c in draw.choice(kinds)] for _ in range(count)
    ]


def fill(base: KnowledgeBase, made_vectors: list[list[int]], start: int = 0) -> None:
    base.add(
        entry_of(made.outcome(number=n, kernel=f"kernel {n}"), v) for n, v in enumerate(made_vectors, start)
    )


def directions(all_vectors: list[list[int]]) -> list[list[float]]:
    """Turn counts into logarithmic steps, and those into vectors of length one."""
    steps = [[sum(c >= s for s in similar.STEPS) for c in v] for v in all_vectors]
    return [[x / (math.hypot(*s) or 1.0) for x in s] for s in steps]


def test_the_same_vector_is_found_first_with_a_cosine_of_one(base: KnowledgeBase) -> None:
    fill(base, vectors(40))
    found = base.similar(vectors(40)[17], 1)[0]
    assert found.similarity == pytest.approx(1.0)


def test_a_kernel_is_not_similar_to_itself(base: KnowledgeBase) -> None:
    base.record(made.outcome(number=1, kernel="matmul"), made.VECTORS["matmul"])
    base.record(made.outcome(number=2, kernel="matmul again"), made.VECTORS["matmul again"])
    found = base.similar(made.VECTORS["matmul"], but=digest("matmul"))
    assert [s.past.kernel for s in found] == ["matmul again"]


def test_a_base_without_vectors_knows_nothing_similar(base: KnowledgeBase) -> None:
    base.record(made.outcome())
    assert base.similar(made.VECTORS["matmul"]) == []


def test_vectors_of_other_targets_and_lengths_are_not_compared(base: KnowledgeBase) -> None:
    base.record(made.outcome(), made.VECTORS["matmul"])
    assert base.similar(made.VECTORS["matmul"], target="cuda") == []
    assert base.similar(made.VECTORS["matmul"][:32]) == []


def test_the_best_shown_can_be_held_to_a_device(base: KnowledgeBase) -> None:
    base.record(made.outcome(9.0, number=1, state=made.on("gpu-nvidia-h200")), made.VECTORS["matmul"])
    base.record(made.outcome(2.0, number=2))
    best = base.similar(made.VECTORS["matmul"], device="cpu-amd-zen4-pocl")[0].past.best
    assert [a.device for a in best] == ["cpu-amd-zen4-pocl"]


def test_kernels_recorded_later_are_found_by_a_question_asked_before(base: KnowledgeBase) -> None:
    fill(base, vectors(30))
    question = [7] * 64
    base.similar(question, 3)
    base.record(made.outcome(number=77, kernel="late"), question)
    assert base.similar(question, 3)[0].past.kernel == "late"


def test_kernels_recorded_by_another_object_are_found(base: KnowledgeBase, tmp_path: Path) -> None:
    fill(base, vectors(5))
    base.similar([7] * 64, 3)
    base.close()
    other = KnowledgeBase(tmp_path / "knowledge")
    other.record(made.outcome(number=77, kernel="late"), [7] * 64)
    assert other.similar([7] * 64, 1)[0].past.kernel == "late"
    other.close()


def test_the_coarse_pass_keeps_nearly_all_of_the_ten_nearest(base: KnowledgeBase) -> None:
    known = vectors(1500)
    fill(base, known)
    everything = directions(known)
    kept = 0
    for question in vectors(1510)[1500:]:
        asked = directions([question])[0]
        truth = sorted((sum(map(mul, asked, d)) for d in everything), reverse=True)[:10]
        found = [s.similarity for s in base.similar(question, 10)]
        kept += sum(cosine >= truth[-1] - 1e-9 for cosine in found)
    assert kept >= 95


def test_counts_beyond_a_byte_are_held_to_it(base: KnowledgeBase) -> None:
    base.record(made.outcome(), [100_000, -5] * 32)
    assert base.similar([255, 0] * 32)[0].similarity == pytest.approx(1.0)
