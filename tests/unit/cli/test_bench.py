"""What the benches make of a job's events, and what they open."""

from __future__ import annotations

import argparse
from pathlib import Path

import made_events as made
import pytest

from mb_agent import events
from mb_kb.knowledge import open_base
from mb_lsp import bench, bench_examples, bench_kb, bench_repeat, bench_server
from mb_lsp.cli import parser
from mb_lsp.problems import CommandError
from mb_targets import registry
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


@pytest.mark.parametrize(
    ("device", "bar"),
    [
        ("cpu-amd-zen4-pocl3.1", 40),
        ("cpu-amd-zen4-intel2026", 10),
        ("cpu-intel-xeon-platinum-8481c-pocl3.1", 40),
        ("cpu-intel-xeon-platinum-8481c-intel2026", 10),
        ("gpu-intel-arc-a770", None),
        ("gpu-nvidia-h200", None),
        ("", None),
    ],
)
def test_the_bar_is_that_of_the_runtime_and_not_of_the_processor(device: str, bar: float | None) -> None:
    assert bench_examples.bar("matmul", device) == bar


def progress(time: float, stage: str, tried: int) -> events.Progress:
    return events.Progress(time, stage, tried, 0.5)


def test_the_rate_is_that_of_the_search_alone() -> None:
    log = [
        progress(1.0, "running the original", 0),
        progress(4.0, "searching", 0),
        progress(6.0, "verifying the best so far", 30),
        progress(9.0, "searching", 40),
        progress(14.0, "timing the original against itself", 60),
        progress(30.0, "verifying a finalist", 60),
    ]
    row = bench_examples.row("gelu", "gelu", [made.started(), *log, made.finished()], 0.0)
    assert row.search_rate == 6.0


def test_a_job_that_never_searched_has_no_rate() -> None:
    log = [made.started(), progress(1.0, "running the original", 0), made.finished()]
    assert bench_examples.row("gelu", "gelu", log, 0.0).search_rate == 0.0


def repeated(*ratios: float) -> bench_repeat.Repeat:
    again = tuple(map(made.measurement, ratios))
    return bench_repeat.Repeat("twice", ("vector",), made.measurement(10.0), again)


def test_ratios_within_15_percent_of_the_first_came_back() -> None:
    assert (repeated(9.0, 10.0, 11.0).spread, repeated(9.0, 10.0, 11.0).met) == (pytest.approx(0.1), True)


def test_one_ratio_further_off_is_enough_to_miss() -> None:
    assert not repeated(10.0, 8.0, 10.0).met


def test_the_line_shows_every_ratio_and_the_bar() -> None:
    shown = bench_repeat.line(repeated(9.0, 10.0, 12.0))
    assert "9.00x, 10.00x, 12.00x" in shown
    assert "20.0% off, bar 15% MISSED" in shown


def test_a_job_that_found_nothing_leaves_nothing_to_repeat() -> None:
    with pytest.raises(CommandError, match="nothing faster"):
        bench_repeat.best([made.started(), made.finished()])


def test_a_file_that_is_no_record_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "evidence.json"
    place.write_text("{}")
    options = parser("bench").parse_args(["bench", "repeat", str(place)])
    with pytest.raises(CommandError, match="no record"):
        bench.run(options)


def test_every_hovered_kernel_of_the_server_bench_has_a_past(tmp_path: Path) -> None:
    kernels = registry.load("opencl").find_kernels(bench_server.document(100), "opencl")
    bench_kb.populate(tmp_path, 200, kernels=kernels)
    base = open_base(tmp_path)
    pasts = [base.past(k.identity) for k in kernels]
    base.close()
    assert pasts
    assert all(pasts)
