"""What the benches make of a job's events, and what they open."""

from __future__ import annotations

import argparse

import made_events as made
import pytest

from mb_agent import events
from mb_lsp import bench, bench_examples, bench_server
from mb_lsp.cli import parser
from mb_lsp.problems import CommandError
from mb_targets.outcome import Speedup


def test_a_row_keeps_winners_that_change_the_launch_apart() -> None:
    log = [made.started(), made.finished(made.offer(50.0, True), made.offer(9.0))]
    row = bench_examples.row("matmul", "matmul", log, 0.0)
    assert (row.kept and row.kept.speedup.value, row.changed and row.changed.speedup.value) == (9.0, 50.0)


def test_the_better_of_both_is_held_against_the_bar_of_the_device() -> None:
    log = [made.started(), made.finished(made.offer(50.0, True), made.offer(9.0))]
    row = bench_examples.row("matmul", "matmul", log, 0.0)
    assert (row.bar, row.met) == (40, True)


def test_a_kernel_without_a_bar_only_has_to_run() -> None:
    assert bench_examples.row("row_sum", "row_sum", [made.started(), made.finished()], 0.0).met


def test_a_job_that_failed_meets_nothing() -> None:
    row = bench_examples.row("row_sum", "row_sum", [events.Failed(1.0, "no device")], 0.0)
    assert (row.met, row.problem) == (False, "no device")


def test_the_first_improvement_is_counted_from_the_start() -> None:
    better = events.Progress(5.0, "measuring", 3, 0.1, Speedup(2.0, 1.9, 2.1))
    row = bench_examples.row("gelu", "gelu", [made.started(), better, made.finished()], 1.0)
    assert row.first_seconds == 4.0


def test_an_example_that_is_not_there_is_named() -> None:
    options = parser("bench").parse_args(["bench", "examples", "nosuch"])
    with pytest.raises(CommandError, match="nosuch"):
        bench.run(options)


def test_the_server_bench_takes_fewer_outcomes() -> None:
    options: argparse.Namespace = parser("bench").parse_args(["bench", "server", "--outcomes", "1000"])
    assert options.outcomes == 1000


def test_the_long_document_has_the_lines_asked_for() -> None:
    lines = bench_server.document(10_000).count("\n")
    assert 9_980 <= lines <= 10_000


def test_a_figure_without_a_bar_is_only_shown() -> None:
    assert bench_server.Figure("round trip", 1e9, "ms").met
