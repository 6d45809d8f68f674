from __future__ import annotations

from pathlib import Path

import made_events
import msgspec

from mb_agent import events
from mb_kb.views import Attempt, KernelPast, SimilarKernel
from mb_lsp import annotate, explain
from mb_lsp.actions import listed
from mb_lsp.annotate import Recalled
from mb_lsp.jobs import closing_words
from mb_lsp.shelf import Job
from mb_lsp.standing import Kind, Standing, standing
from mb_targets import registry
from mb_targets.outcome import Speedup

GAIN = Attempt("jam(y, 8)", "cpu-zen4-pocl", Speedup(2.1, 2.0, 2.2), True, "", "", 0.0, "v")
REFUSED = Attempt("tile|x", "cpu-zen4-pocl", None, False, "races", "", 0.0, "w")
PAST = KernelPast("1" * 32, "twice", "opencl", 3, 1, 1, (("races", 1),), 0.0, (GAIN,), (REFUSED, GAIN))


def job(folder: Path, *log: events.Event) -> Job:
    events.write_request(folder, made_events.request())
    (folder / "events.jsonl").write_bytes(b"".join(map(events.encode, log)))
    return Job(folder, "file:///k.cl", "/k.cl", "opencl", "twice", made_events.KERNEL.identity)


def lens(kind: Kind, found: Job | None = None, trusted: bool = True) -> str:
    return annotate.lens(Standing(kind, found), Recalled(), trusted).title


def test_a_search_that_tried_nothing_does_not_say_that_nothing_is_faster(tmp_path: Path) -> None:
    found = job(tmp_path, msgspec.structs.replace(made_events.finished(), tried=0, refused=0))
    shown = [lens("nothing", found), annotate.outcome_words(found), closing_words(found)]
    assert not [words for words in shown if "faster" in words]


def test_an_unknown_kernel_is_offered_without_more() -> None:
    assert lens("none") == "Optimize"


def test_a_kernel_with_a_past_says_so() -> None:
    title = annotate.lens(Standing("none"), Recalled(PAST), True).title
    assert title == "Optimize | 3 past outcomes | best 2.1x on cpu-zen4-pocl"


def test_a_click_in_an_untrusted_workspace_asks_for_trust() -> None:
    shown = annotate.lens(Standing("none"), Recalled(), False)
    assert (shown.title, shown.command) == ("Trust this workspace and optimize", "trust")


def test_a_running_job_shows_share_and_best(tmp_path: Path) -> None:
    at = events.Progress(1.0, "searching", 12, 0.4, Speedup(1.42, 1.4, 1.45))
    assert lens("running", job(tmp_path, at)) == "Optimizing 40%, best 1.4x | Cancel"


def test_a_result_that_waits_is_shown_with_its_gain(tmp_path: Path) -> None:
    found = job(tmp_path, made_events.finished(made_events.offer(2.31)))
    assert lens("ready", found) == "Verified 2.31x: show diff"


def test_a_search_without_a_gain_says_how_much_was_tried(tmp_path: Path) -> None:
    assert (
        lens("nothing", job(tmp_path, made_events.finished())) == "Optimize | no faster variant in 12 tried"
    )


def test_a_long_failure_is_cut_in_the_lens(tmp_path: Path) -> None:
    failed = events.Failed(1.0, "x" * 300)
    assert len(lens("failed", job(tmp_path, failed))) <= annotate.LENS_CHARACTERS


def test_a_hover_tables_good_and_bad_outcomes_once_each() -> None:
    text = annotate.hover("twice", Standing("none"), Recalled(PAST))
    assert text is not None
    rows = [line for line in text.splitlines() if line.startswith("| 1970")]
    assert rows == [
        "| 1970-01-01 | `jam(y, 8)` | **2.10x [2.00-2.20]** | cpu-zen4-pocl |",
        "| 1970-01-01 | `tile\\|x` | refused: races | cpu-zen4-pocl |",
    ]


def test_a_hover_names_similar_kernels() -> None:
    text = annotate.hover("other", Standing("none"), Recalled(similar=(SimilarKernel(0.93, PAST),)))
    assert text is not None
    assert "| `twice` | 93 % | `jam(y, 8)` | **2.10x [2.00-2.20]** | cpu-zen4-pocl |" in text


def test_nothing_known_is_no_hover() -> None:
    assert annotate.hover("k", Standing("none"), Recalled()) is None


def test_a_question_about_the_text_is_marked_on_it(tmp_path: Path) -> None:
    failed = events.Failed(1.0, "how large is y?", cause="input")
    assert "how large is y?" in annotate.hint("k", Standing("failed", job(tmp_path, failed)))


def test_what_the_text_cannot_answer_is_not_marked_on_it(tmp_path: Path) -> None:
    failed = events.Failed(1.0, "no device", cause="device")
    assert annotate.hint("k", Standing("failed", job(tmp_path, failed))) == ""


def test_a_text_that_is_a_result_stands_as_applied(tmp_path: Path) -> None:
    source = made_events.variant("x").source
    (kernel,) = registry.load("opencl").find_kernels(source, "opencl")
    found = job(tmp_path, made_events.finished(made_events.offer(2.31)))
    assert standing(kernel, [found]) == Standing("applied", found, 0)


def test_a_later_search_without_a_gain_hides_no_result(tmp_path: Path) -> None:
    older = job(tmp_path / "1", made_events.finished(made_events.offer(2.31)))
    newer = job(tmp_path / "2", made_events.finished())
    assert standing(made_events.KERNEL, [newer, older]) == Standing("ready", older)


def test_a_search_cut_short_offers_what_was_verified(tmp_path: Path) -> None:
    found = job(tmp_path, made_events.started(), made_events.tried("a", 1.5), made_events.tried("b", None))
    assert found.phase == "interrupted"
    assert [o.measurement.speedup.value for o in found.log.offers] == [1.5]


def test_a_search_that_failed_late_keeps_what_was_verified(tmp_path: Path) -> None:
    found = job(tmp_path, made_events.tried("a", 1.5), events.Failed(1.0, "the device is gone"))
    assert standing(made_events.KERNEL, [found]).kind == "ready"
    assert annotate.outcome_words(found).startswith("the device is gone; the best so far was kept: `twice`")


def test_a_gain_too_small_to_claim_is_not_offered(tmp_path: Path) -> None:
    assert job(tmp_path, made_events.tried("a", 1.02)).log.offers == ()


def test_of_each_kind_of_offer_the_best_is_kept(tmp_path: Path) -> None:
    tried = [made_events.tried("a", 1.5), made_events.tried("b", 2.0), made_events.tried("c", 3.0, True)]
    offers = job(tmp_path, *tried).log.offers
    assert [(o.measurement.speedup.value, o.changes_launch) for o in offers] == [(3.0, True), (2.0, False)]


def test_the_evidence_lists_what_was_and_what_was_not_checked(tmp_path: Path) -> None:
    offer = made_events.offer(2.31)
    text = explain.evidence(job(tmp_path, made_events.started(), made_events.finished(offer)), offer)
    assert "| values | yes | 0.50 | 9 sizes |" in text
    assert "| races | not made here | 0.00 | Oclgrind is not installed |" in text
    assert "Not checked: images." in text
    assert "**2.31x [2.26-2.36]** (95 %)" in text
    assert "// mb: global=(n,) n=1024" in text


def test_a_result_is_stale_when_its_kernel_is_launched_another_way(tmp_path: Path) -> None:
    found = job(tmp_path, made_events.started(), made_events.finished(made_events.offer(2.31)))
    (tmp_path / "launch.txt").write_text("// mb: n=1024")
    kinds = [
        standing(made_events.KERNEL, [found], now).kind
        for now in ("", "// mb: n=1024", made_events.started().launch_comment, "// mb: n=7")
    ]
    assert kinds == ["ready", "ready", "ready", "stale"]
    shown = annotate.lens(standing(made_events.KERNEL, [found], "// mb: n=7"), Recalled(), True).title
    assert shown == "Optimize | verified 2.31x with another launch"


def test_what_a_search_cut_short_found_is_said_not_to_be_measured_again(tmp_path: Path) -> None:
    found = job(tmp_path, made_events.started(), made_events.tried("double", 1.42))
    found.mark_cancelled(True)
    titles = [a.title for a in listed("", made_events.KERNEL, Standing("ready", found), trusted=True)]
    assert "Apply optimized `twice` (1.42x [1.39-1.45], verified, not finally re-measured)" in titles
    assert "not finally re-measured" in explain.evidence(found, found.log.offers[0])
