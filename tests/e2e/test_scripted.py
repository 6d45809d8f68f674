"""The editor's whole way through the server over stdio, with a scripted job in place of the search."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_lsp
from e2e.editing import PROFILES, Window, make_client, until
from lsprotocol import types as t
from pytest_lsp import ClientServerConfig, LanguageClient

from mb_lsp import processes
from mb_lsp.trust import Trust

pytestmark = pytest.mark.asyncio(loop_scope="module")

SERVER = Path(__file__).parent / "scripted_server.py"
TEXT = """// {note}
__kernel void {name}(__global float *y, int n)
{{
    int i = get_global_id(0);
    if (i < n)
        y[i] = y[i] * 2.0f;
}}
"""


def text(name: str, note: str = "") -> str:
    return TEXT.format(name=name, note=note)


@pytest_lsp.fixture(
    scope="module",
    params=sorted(PROFILES),
    config=ClientServerConfig(server_command=[sys.executable, str(SERVER)], client_factory=make_client),
)
async def client(
    lsp_client: LanguageClient, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[None]:
    top = tmp_path_factory.mktemp(request.param)
    (top / "work").mkdir()
    Trust(top / "data").trust(top / "work")
    lsp_client.window = Window(lsp_client, top / "work")
    await lsp_client.initialize_session(
        t.InitializeParams(
            capabilities=PROFILES[request.param](),
            workspace_folders=[t.WorkspaceFolder(uri=(top / "work").as_uri(), name="work")],
            initialization_options={"dataFolder": str(top / "data"), "colour": 1},
        )
    )
    yield
    await lsp_client.shutdown_session()


@pytest.fixture
def window(client: LanguageClient) -> Window:
    found = client.window
    assert isinstance(found, Window)
    return found


async def test_each_kernel_has_a_lens_on_its_first_line(window: Window) -> None:
    uri = window.open("two.cl", text("one") + text("two"))
    lenses = await window.lenses(uri)
    assert [(lens.range.start.line, lens.command.title) for lens in lenses if lens.command] == [
        (1, "Optimize"),
        (8, "Optimize"),
    ]


async def test_a_kernel_is_optimized_and_its_result_applied(window: Window) -> None:
    uri = window.open("whole.cl", text("whole"))
    await window.optimize(uri, 3)
    await window.said("`whole` verified 2.31x")
    assert await window.titles(uri) == ["Verified 2.31x: show diff"]
    await window.pick(await window.action(uri, 3, "Apply optimized `whole` (2.31x [2.26-2.36], verified)"))
    await until(lambda: "y[i] + y[i]" in window.texts[uri])
    assert window.texts[uri] == text("whole").replace("* 2.0f", "+ y[i]")
    assert await window.titles(uri) == ["Applied, verified 2.31x: show evidence"]


async def test_only_the_lines_that_differ_are_edited(window: Window) -> None:
    uri = window.open("hunk.cl", text("hunk"))
    await window.optimize(uri, 3)
    await window.said("`hunk` verified")
    window.edits.clear()
    await window.pick(await window.action(uri, 3, "Apply optimized"))
    edit = window.edits[-1]
    edits = edit.changes[uri] if edit.changes else edit.document_changes[0].edits
    assert [(e.range.start.line, e.range.end.line) for e in edits] == [(5, 6)]


async def test_undo_is_understood(window: Window) -> None:
    uri = window.open("undo.cl", text("undo"))
    await window.optimize(uri, 3)
    await window.said("`undo` verified")
    await window.pick(await window.action(uri, 3, "Apply optimized"))
    window.change(uri, text("undo"))
    assert await window.titles(uri) == ["Verified 2.31x: show diff"]


async def test_a_kernel_that_moved_gets_its_result_where_it_is_now(window: Window) -> None:
    uri = window.open("moved.cl", text("moved"))
    await window.optimize(uri, 3)
    await window.said("`moved` verified")
    moved = "/* 😋 */\n\f\n" + text("moved").replace("    if", "    // mine\n    if")
    window.change(uri, moved)
    await window.pick(await window.action(uri, 6, "Apply optimized"))
    assert window.texts[uri] == moved.replace("* 2.0f", "+ y[i]")


async def test_a_kernel_that_changed_keeps_its_text(window: Window) -> None:
    uri = window.open("stale.cl", text("stale"))
    await window.optimize(uri, 3)
    await window.said("`stale` verified")
    window.change(uri, text("stale").replace("2.0f", "3.0f"))
    assert await window.titles(uri) == ["Optimize | verified 2.31x for an older text"]
    titles = [a.title for a in await window.actions(uri, 3)]
    assert not any(title.startswith("Apply") for title in titles)
    assert "Show diff of optimized `stale`" in titles


async def test_an_action_listed_before_an_edit_changes_nothing_after_it(window: Window) -> None:
    uri = window.open("late.cl", text("late"))
    job = await window.optimize(uri, 3)
    await window.said("`late` verified")
    window.change(uri, text("late").replace("2.0f", "3.0f"))
    arguments = [{"uri": uri, "job": job}]
    answer = await window.run(t.Command(title="", command="modelblaster.apply", arguments=arguments))
    assert answer is None
    await window.said("`late` changed since it was measured")
    assert window.texts[uri] == text("late").replace("2.0f", "3.0f")


async def test_lines_end_as_the_document_has_them(window: Window) -> None:
    before = text("crlf").replace("\n", "\r\n")
    uri = window.open("crlf.cl", before)
    await window.optimize(uri, 3)
    await window.said("`crlf` verified")
    await window.pick(await window.action(uri, 3, "Apply optimized"))
    assert window.texts[uri] == before.replace("* 2.0f", "+ y[i]")


async def test_progress_counts_candidates_and_never_falls(window: Window) -> None:
    uri = window.open("steps.cl", text("steps"))
    job = await window.optimize(uri, 3)
    await window.said("`steps` verified")
    reports = window.client.progress_reports.get(f"modelblaster-{job}", [])
    percentages = [r.percentage for r in reports if not isinstance(r, t.WorkDoneProgressEnd)]
    assert percentages == sorted(percentages)
    if reports:
        assert reports[-1].message == "verified 2.31x"
        assert all(f"{r.percentage}%" in r.message for r in reports[:-1])


async def test_a_kernel_that_is_being_optimized_gives_the_same_job(window: Window) -> None:
    uri = window.open("same.cl", text("same", "slow"))
    job = await window.optimize(uri, 3)
    arguments = [{"uri": uri, "kernel": "same"}]
    again = await window.run(t.Command(title="", command="modelblaster.optimize", arguments=arguments))
    assert again == {"job": job}
    await window.pick(await window.action(uri, 3, "Cancel optimizing"))
    await window.said("optimization of `same` was cancelled")


async def test_cancel_kills_the_job_and_groups_of_its_workers(window: Window) -> None:
    uri = window.open("kill.cl", text("kill", "slow"))
    job = await window.optimize(uri, 3)
    worker = await worker_of(window, job)
    born = processes.birth(worker)
    await until(lambda: born)
    (lens,) = await window.lenses(uri)
    assert lens.command
    await window.run(t.Command(title="", command="modelblaster.cancel", arguments=[{"job": job}]))
    await until(lambda: not processes.alive(worker, born), 2)
    await window.said("optimization of `kill` was cancelled")
    assert await window.titles(uri) == ["Optimize"]


async def test_an_edit_while_the_job_runs_is_said_in_its_progress(window: Window) -> None:
    uri = window.open("typing.cl", text("typing", "slow"))
    job = await window.optimize(uri, 3)
    await worker_of(window, job)
    window.change(uri, text("typing", "slow").replace("2.0f", "3.0f"))
    if window.client.capabilities.window:
        reports = window.client.progress_reports[f"modelblaster-{job}"]
        await until(lambda: "source changed, the result is for the old text" in str(reports[-1].message))
    arguments = [{"job": job}]
    await window.run(t.Command(title="", command="modelblaster.cancel", arguments=arguments))
    await window.said("optimization of `typing` was cancelled")


async def test_the_lens_of_a_running_job_says_how_far_it_is(window: Window) -> None:
    uri = window.open("run.cl", text("run", "slow"))
    job = await window.optimize(uri, 3)
    await worker_of(window, job)
    titles: list[str] = []
    while titles != ["Optimizing 40%, best 1.4x | Cancel"]:
        titles = await window.titles(uri)
    (lens,) = await window.lenses(uri)
    assert lens.command
    await window.run(lens.command)
    await window.said("optimization of `run` was cancelled")


async def test_cancel_by_the_progress_token_keeps_the_best_so_far(window: Window) -> None:
    uri = window.open("token.cl", text("token", "slow gain"))
    job = await window.optimize(uri, 3)
    await worker_of(window, job)
    token = f"modelblaster-{job}"
    if window.client.capabilities.window is None:
        await window.pick(await window.action(uri, 3, "Cancel optimizing"))
    else:
        await until(lambda: len(window.client.progress_reports.get(token, [])) > 1)
        window.client.window_work_done_progress_cancel(t.WorkDoneProgressCancelParams(token=token))
    await window.said("cancelled; the best so far was kept: `token` verified 1.42x")
    await window.pick(await window.action(uri, 3, "Apply optimized `token` (1.42x"))
    assert window.texts[uri] == text("token", "slow gain").replace("* 2.0f", "+ y[i]")


async def test_a_discarded_result_is_gone(window: Window) -> None:
    uri = window.open("drop.cl", text("drop"))
    job = await window.optimize(uri, 3)
    await window.said("`drop` verified")
    await window.pick(await window.action(uri, 3, "Discard result"))
    assert await window.titles(uri) == ["Optimize"]
    assert not list((window.folder.parent / "data" / "jobs").glob(job))


async def test_trying_again_replaces_a_failure(window: Window) -> None:
    uri = window.open("twice.cl", text("twice", "crash"))
    first = await window.optimize(uri, 3)
    await window.said("`twice` was not optimized")
    second = await window.optimize(uri, 3)
    jobs = window.folder.parent / "data" / "jobs"
    await until(lambda: (jobs / second).exists() and not (jobs / first).exists())


async def test_a_question_is_answered_by_a_quick_fix(window: Window) -> None:
    uri = window.open("ask.cl", text("ask", "wrong"))
    await window.optimize(uri, 3)
    await window.said("`ask` was not optimized: nothing says how large `y` is")
    await window.pick(await window.action(uri, 3, "Insert a `// mb:` comment"))
    assert window.texts[uri] == text("ask", "wrong").replace(
        "__kernel", "// mb: global=(?,) y=f32[?]\n__kernel"
    )


async def test_the_launch_that_was_used_is_written_above_the_kernel(window: Window) -> None:
    uri = window.open("launch.cl", text("launch"))
    await window.optimize(uri, 3)
    await window.said("`launch` verified")
    await window.pick(await window.action(uri, 3, "Write the launch of `launch`"))
    assert "\n// mb: global=(n,) n=1024\n__kernel void launch" in window.texts[uri]


async def test_a_job_that_dies_leaves_a_sentence(window: Window) -> None:
    uri = window.open("crash.cl", text("crash"))
    await window.optimize(uri, 3)
    message = await window.said("`crash` was not optimized")
    assert "ended with code 3" in message
    assert "Traceback" not in message


async def test_a_disk_that_is_full_for_the_jobs_log_is_said(window: Window) -> None:
    uri = window.open("full.cl", text("full"))
    await window.optimize(uri, 3)
    message = await window.said("`full` was not optimized")
    assert "File too large" in message
    assert "Traceback" not in message
    assert (await window.titles(uri))[0].startswith("Optimize | last try")


async def test_a_result_measured_with_another_launch_is_not_offered(window: Window) -> None:
    before = text("other").replace("__kernel", "// mb: global=(n,) n=1024\n__kernel")
    uri = window.open("other.cl", before)
    job = await window.optimize(uri, 3)
    await window.said("`other` verified")
    window.change(uri, before.replace("n=1024", "n=64"))
    titles: list[str] = []
    while titles != ["Optimize | verified 2.31x with another launch"]:
        titles = await window.titles(uri)
    await window.run(t.Command(title="", command="modelblaster.apply", arguments=[{"uri": uri, "job": job}]))
    await window.said("kernel `other` was measured with another launch")
    window.change(uri, before)
    while titles != ["Verified 2.31x: show diff"]:
        titles = await window.titles(uri)


async def test_an_answer_leaves_the_comment_that_is_there(window: Window) -> None:
    before = text("half", "wrong").replace("__kernel", "// mb: global=(n,)\n__kernel")
    uri = window.open("half.cl", before)
    await window.optimize(uri, 3)
    await window.said("`half` was not optimized")
    await window.pick(await window.action(uri, 3, "Insert a `// mb:` comment"))
    assert window.texts[uri] == before.replace("__kernel", "// mb: global=(?,) y=f32[?]\n__kernel")


async def test_the_diff_and_the_evidence_open_as_files(window: Window) -> None:
    uri = window.open("show.cl", text("show"))
    job = await window.optimize(uri, 3)
    await window.said("`show` verified")
    await window.pick(await window.action(uri, 3, "Show diff"))
    await window.pick(await window.action(uri, 3, "Show evidence"))
    folder = window.folder.parent / "data" / "jobs" / job
    assert "+        y[i] = y[i] + y[i];" in (folder / "show.diff").read_text()
    assert "verified 2.31x" in (folder / "show.md").read_text()
    if window.client.capabilities.window:
        shown = [each.uri for each in window.client.shown_documents]
        assert [(folder / "show.diff").as_uri(), (folder / "show.md").as_uri()] == shown[-2:]


async def test_a_result_is_marked_with_a_hint(window: Window) -> None:
    uri = window.open("hint.cl", text("hint"))
    await window.optimize(uri, 3)
    await window.said("`hint` verified")
    (mark,) = await until(lambda: window.client.diagnostics.get(uri))
    assert mark.severity == t.DiagnosticSeverity.Hint
    assert mark.message == "kernel `hint`: verified 2.31x available"


HOST = """#include <CL/cl.h>
void run(cl_command_queue q, cl_program p, size_t n)
{
    cl_int err;
    cl_kernel k = clCreateKernel(p, "both", &err);
    size_t global[1] = {n};
    clEnqueueNDRangeKernel(q, k, 1, NULL, global, NULL, 0, NULL, NULL);
}
"""


async def test_a_result_that_changes_the_launch_edits_the_host_code_too(window: Window) -> None:
    host = window.open("launches/host.c", HOST, language="c")
    uri = window.open("launches/both.cl", text("both"))
    await window.optimize(uri, 3)
    await window.said("`both` verified 5.50x")
    titles = [a.title for a in await window.actions(uri, 3)]
    assert "Apply optimized `both` and its launch (5.50x [5.39-5.61], verified)" in titles
    assert "Apply optimized `both` (2.31x [2.26-2.36], verified)" in titles
    await window.pick(await window.action(uri, 3, "Apply optimized `both` and its launch"))
    assert "{n / 16}" in window.texts[host]
    assert "y[i] + y[i]" in window.texts[uri]


async def test_host_code_with_unsaved_changes_is_not_edited(window: Window) -> None:
    host = window.open("unsaved/host.c", HOST, language="c")
    uri = window.open("unsaved/both.cl", text("both"))
    window.change(host, "// typing\n" + HOST)
    await window.optimize(uri, 3)
    await until(lambda: sum("`both` verified" in m.message for m in window.client.messages) > 1)
    job = (await window.action(uri, 3, "Show diff")).command.arguments[0]["job"]
    await window.run(t.Command(title="", command="modelblaster.apply", arguments=[{"job": job}]))
    await window.said("host.c has changes that are not saved")
    assert window.texts[host] == "// typing\n" + HOST


async def test_nothing_runs_in_a_workspace_that_is_not_trusted(window: Window) -> None:
    uri = window.open("../elsewhere/shy.cl", text("shy"))
    (first, *_) = await window.actions(uri, 3)
    assert first.title == "Trust this workspace and optimize `shy`"
    arguments = [{"uri": uri, "kernel": "shy"}]
    answer = await window.run(t.Command(title="", command="modelblaster.optimize", arguments=arguments))
    assert answer is None
    await window.said("not trusted")


async def test_trusting_a_workspace_optimizes_at_once(window: Window) -> None:
    uri = window.open("../third/brave.cl", text("brave"))
    await window.pick(await window.action(uri, 3, "Trust this workspace"))
    await window.said("`brave` verified")


async def test_unsaved_text_is_optimized(window: Window) -> None:
    uri = window.open("Untitled-1", text("unsaved"), saved=False)
    await window.optimize(uri, 3)
    await window.said("`unsaved` verified")
    await window.pick(await window.action(uri, 3, "Apply optimized"))
    assert window.texts[uri] == text("unsaved").replace("* 2.0f", "+ y[i]")


async def test_a_kernel_in_a_python_string_is_optimized_in_place(window: Window) -> None:
    before = "import x\nSOURCE = r'''\n" + text("inner") + "'''\n"
    uri = window.open("host.py", before, language="python")
    await window.optimize(uri, 5)
    await window.said("`inner` verified")
    await window.pick(await window.action(uri, 5, "Apply optimized"))
    assert window.texts[uri] == before.replace("* 2.0f", "+ y[i]")


@pytest.mark.parametrize(
    "broken", ["", "__kernel void (", "\x00\ufffd{{{", "__kernel void k(int n) {", "\ud83d"]
)
async def test_broken_text_gives_no_lens_and_no_error(window: Window, broken: str) -> None:
    uri = window.open("broken.cl", "")
    window.change(uri, broken)
    assert await window.titles(uri) == []
    assert await window.actions(uri, 0) == []
    assert await window.hover(uri, 0) is None


async def test_only_the_kinds_that_were_asked_for_are_listed(window: Window) -> None:
    uri = window.open("kinds.cl", text("kinds"))
    assert await window.actions(uri, 3, ["refactor.rewrite"])
    assert await window.actions(uri, 3, ["quickfix", "refactor.extract"]) == []


async def test_an_action_that_is_not_ours_is_resolved_to_itself(window: Window) -> None:
    foreign = t.CodeAction(title="foreign", data={"from": "elsewhere"})
    assert await window.client.code_action_resolve_async(foreign) == foreign


async def test_a_command_for_an_unknown_job_says_so(window: Window) -> None:
    await window.run(t.Command(title="", command="modelblaster.cancel", arguments=[{"job": "gone"}]))
    await window.said("there is no such job any more")


async def test_a_bad_setting_is_reported(window: Window) -> None:
    await window.said("there is no setting 'colour'")


async def worker_of(window: Window, job: str) -> int:
    note = window.folder.parent / "data" / "jobs" / job / "worker.pid"
    return int(await until(lambda: note.exists() and note.read_text()))
