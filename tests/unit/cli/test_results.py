"""From a job's events to what is printed."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import made_events as made
import msgspec
import pytest
from rich.console import Console

from mb_agent import events
from mb_lsp import optimize, report, results
from mb_lsp.problems import Code
from mb_targets.outcome import Check, Level

DOCS = Path(__file__).parents[3] / "docs" / "cli.md"


def summarize(*log: events.Event, cancelled: bool = False) -> tuple[results.Result, Code]:
    return optimize.summarize(made.request(), list(log), cancelled, "k.cl")


def printed(result: results.Result) -> str:
    console = Console(file=io.StringIO(), width=200, highlight=False)
    report.show(console, result)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_best_offer_decides_the_result() -> None:
    result, code = summarize(made.started(), made.finished(made.offer(4.0, True), made.offer(2.0)))
    assert (result.verdict, result.level, result.changes_launch, code) == ("faster", "E4", True, Code.DONE)


def test_nothing_faster_is_a_success() -> None:
    result, code = summarize(made.started(), made.finished())
    assert (result.verdict, result.speedup, code) == ("nothing faster", None, Code.DONE)


def test_a_search_that_tried_nothing_does_not_say_that_nothing_is_faster() -> None:
    result, code = summarize(made.started(), msgspec.structs.replace(made.finished(), tried=0, refused=0))
    assert (result.verdict, code) == ("nothing tried", Code.DONE)
    assert "no faster" not in printed(result)


@pytest.mark.parametrize(
    ("cause", "code"), [("input", Code.INPUT), ("device", Code.DEVICE), ("internal", Code.INTERNAL)]
)
def test_a_failure_gives_the_code_of_its_cause(cause: str, code: Code) -> None:
    failed = msgspec.convert({"type": "failed", "time": 1, "message": "no", "cause": cause}, events.Failed)
    assert summarize(failed)[1] == code


def test_a_check_that_could_not_be_made_is_why_nothing_is_offered() -> None:
    unchecked = made.tried("tile", 2.0)
    checks = (Check("races", None, 0.0),)
    verdict = replace(unchecked.outcome.verdict, level=Level.VALUES, checks=checks)
    unchecked = msgspec.structs.replace(unchecked, outcome=replace(unchecked.outcome, verdict=verdict))
    result, _ = summarize(made.started(), unchecked, made.finished())
    assert "for want of a check: races" in result.reason


def test_a_failure_shows_the_comment_that_would_answer_it() -> None:
    result, _ = summarize(events.Failed(1.0, "n is unknown", "// mb: global=(?,)", "input"))
    assert "// mb: global=(?,)" in printed(result)


def test_a_cancelled_search_counts_what_was_tried() -> None:
    result, code = summarize(made.started(), made.tried("a", None), made.tried("b", 1.0), cancelled=True)
    assert (result.verdict, result.tried, result.refused, code) == ("cancelled", 2, 1, Code.CANCELLED)


def test_a_search_that_fails_half_way_keeps_what_it_had_verified() -> None:
    failed = events.Failed(3.0, "the device is gone", cause="device")
    log: list[events.Event] = [made.started(), made.tried("vector", 2.0), failed]
    result, code = optimize.summarize(made.request(path="/nowhere/k.cl"), log, False, "k.cl")
    assert (result.verdict, code) == ("failed", Code.DEVICE)
    assert [(offer.speedup.value, offer.final) for offer in result.offers] == [(2.0, False)]
    assert "not finally re-measured" in printed(result)


@pytest.mark.parametrize(
    ("diff", "words"),
    [
        (
            "--- a/k.cl\n+++ b/k.cl\n@@ -1 +1 @@\n",
            "no call was found, so only the `// mb:` comment is edited",
        ),
        (
            "--- a/k.cl\n+++ b/k.cl\n@@ -1 +1 @@\n--- a/m.c\n+++ b/m.c\n@@ -1 +1 @@\n@@ -9 +9 @@\n",
            "calls that launch it are edited in m.c (2 places)",
        ),
        ("--- a/h.py\n+++ b/h.py\n@@ -1 +1 @@\n", "what is edited for that is in h.py"),
    ],
)
def test_the_report_names_the_calls_that_are_edited(diff: str, words: str) -> None:
    result, _ = summarize(made.started(), made.finished(made.offer(4.0, True, diff)))
    assert f"changes the NDRange; {words}" in printed(result)


def test_a_search_cancelled_before_it_began_is_no_error() -> None:
    assert summarize(cancelled=True)[1] == Code.CANCELLED


def test_one_kernel_gives_one_object_and_several_a_list() -> None:
    result, _ = summarize(made.started(), made.finished())
    assert isinstance(json.loads(optimize.to_json([result], several=False)), dict)
    assert isinstance(json.loads(optimize.to_json([result, result], several=True)), list)


def documented(heading: str, end: str) -> set[str]:
    text = DOCS.read_text()
    part = text[text.index(heading) :]
    rows = re.findall(r"^\| ((?:`\w+`,? ?)+) \|", part[: part.index(end)], re.MULTILINE)
    return {name for row in rows for name in re.findall(r"\w+", row)}


@pytest.mark.parametrize(
    ("heading", "end", "struct"),
    [
        ("### JSON", "`speedup`:", results.Result),
        ("`speedup`:", "Each of `offers`:", results.SpeedupResult),
        ("Each of `offers`:", "## `modelblaster doctor", results.OfferResult),
    ],
)
def test_the_documentation_names_exactly_the_fields_that_are_printed(
    heading: str, end: str, struct: type[msgspec.Struct]
) -> None:
    assert documented(heading, end) == set(struct.__struct_fields__)


def test_every_field_is_always_there() -> None:
    result, _ = summarize(events.Failed(1.0, "no device", cause="device"))
    assert set(json.loads(optimize.to_json([result], several=False))) == set(results.Result.__struct_fields__)


def test_the_report_shows_interval_clock_and_device() -> None:
    result, _ = summarize(made.started(), made.finished(made.offer(2.0)))
    text = printed(result)
    assert "2.00x [1.96-2.04] CPU time" in text
    assert made.DEVICE.key in text


def test_the_report_keeps_winners_that_change_the_launch_apart() -> None:
    result, _ = summarize(made.started(), made.finished(made.offer(4.0, True), made.offer(2.0)))
    text = printed(result)
    assert text.index("changes the NDRange") < text.index("keeps the NDRange")


def test_the_report_lists_each_check_and_what_was_not_checked() -> None:
    result, _ = summarize(made.started(), made.finished(made.offer(2.0)))
    text = printed(result)
    assert re.search(r"values +yes +0.50 +9 sizes", text)
    assert re.search(r"races +not made", text)
    assert "Not checked: images" in text


def test_the_report_says_where_each_value_of_the_launch_came_from() -> None:
    result, _ = summarize(made.started(), made.finished(made.offer(2.0)))
    assert re.search(r"y +inout f32\[n\] +probed", printed(result))


def test_files_of_a_diff_are_named_from_the_folder_one_is_in() -> None:
    diff = "--- a/home/me/p/k.cl\n+++ b/home/me/p/k.cl\n@@ -1 +1 @@\n-x\n+y\n"
    assert results.from_here(diff, Path("/home/me/p")).startswith("--- a/k.cl\n+++ b/k.cl\n@@")


def test_files_elsewhere_keep_their_whole_path() -> None:
    diff = "--- a/other/k.cl\n+++ b/other/k.cl\n"
    assert results.from_here(diff, Path("/home/me/p")) == diff


def test_each_offers_diff_is_written_into_the_jobs_folder(tmp_path: Path) -> None:
    result, _ = summarize(made.started(), made.finished(made.offer(4.0, True), made.offer(2.0)))
    optimize.with_files(result, tmp_path)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["changes-launch.diff", "keeps-launch.diff"]


def test_a_folder_that_is_gone_loses_no_result(tmp_path: Path) -> None:
    result, _ = summarize(made.started(), made.finished(made.offer(2.0)))
    assert optimize.with_files(result, tmp_path / "gone") == result
