"""What a server leaves behind, and what the next one finds."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from e2e.raw import Raw, served

from mb_lsp import processes

KERNEL = """// {note}
__kernel void {name}(__global float *y, int n)
{{
    int i = get_global_id(0);
    if (i < n)
        y[i] = y[i] * 2.0f;
}}
"""


def end_by_shutdown(server: Raw) -> None:
    server.leave()


def end_by_closed_pipe(server: Raw) -> None:
    assert server.process.stdin
    server.process.stdin.close()


def end_by_sigterm(server: Raw) -> None:
    server.process.send_signal(signal.SIGTERM)


def start(server: Raw, folder: Path, name: str, note: str = "slow") -> tuple[str, Path]:
    """Start a job and give the document's URI and the job's folder."""
    path = folder / "work" / f"{name}.cl"
    uri = server.open(path, KERNEL.format(name=name, note=note))
    job = server.run("trust", uri=uri, kernel=name)["job"]
    return uri, folder / "data" / "jobs" / job


def worker_of(job: Path) -> tuple[int, str]:
    """Wait for the job's worker, which is in a process group of its own, and give its id and birth."""
    note = job / "worker.pid"
    while not (note.exists() and note.read_text()):
        time.sleep(0.02)
    pid = int(note.read_text())
    return pid, processes.birth(pid)


def gone(pid: int, born: str) -> bool:
    end = time.monotonic() + 10
    while processes.alive(pid, born) and time.monotonic() < end:
        time.sleep(0.02)
    return not processes.alive(pid, born)


def lens(server: Raw, uri: str) -> str:
    (found,) = server.ask("textDocument/codeLens", {"textDocument": {"uri": uri}})
    return str(server.ask("codeLens/resolve", found)["command"]["title"])


def actions(server: Raw, uri: str) -> dict[str, dict[str, object]]:
    at = {"line": 3, "character": 0}
    context: dict[str, list[object]] = {"diagnostics": []}
    params = {"textDocument": {"uri": uri}, "range": {"start": at, "end": at}, "context": context}
    return {action["title"]: action for action in server.ask("textDocument/codeAction", params)}


@pytest.mark.parametrize("end", [end_by_shutdown, end_by_closed_pipe, end_by_sigterm])
def test_no_worker_outlives_the_server(tmp_path: Path, end: Callable[[Raw], None]) -> None:
    with served() as server:
        server.begin(tmp_path)
        pid, born = worker_of(start(server, tmp_path, "left")[1])
        end(server)
        assert server.process.wait(20) is not None
        assert gone(pid, born)


def test_a_job_whose_server_was_killed_is_ended_and_offered_by_the_next_one(tmp_path: Path) -> None:
    with served() as server:
        server.begin(tmp_path)
        uri, job = start(server, tmp_path, "torn", "slow gain")
        pid, born = worker_of(job)
        server.process.kill()
    with served() as server:
        server.begin(tmp_path)
        server.open(tmp_path / "work" / "torn.cl", KERNEL.format(name="torn", note="slow gain"))
        assert lens(server, uri) == "Resume the interrupted search | best 1.42x"
        assert gone(pid, born)
        offered = actions(server, uri)
    assert "Resume optimizing `torn`" in offered
    assert "Discard result for `torn`" in offered
    assert any(title.startswith("Apply optimized `torn` (1.42x") for title in offered)


def test_an_interrupted_job_goes_on_when_it_is_resumed(tmp_path: Path) -> None:
    with served() as server:
        server.begin(tmp_path)
        uri, job = start(server, tmp_path, "again")
        worker_of(job)
        server.leave()
    (job / "worker.pid").unlink()
    with served() as server:
        server.begin(tmp_path)
        server.open(tmp_path / "work" / "again.cl", KERNEL.format(name="again", note="slow"))
        assert server.run("resume", uri=uri, job=job.name) == {"job": job.name}
        worker_of(job)
        assert "Cancel optimizing `again`" in actions(server, uri)
        server.leave()


def test_a_result_is_offered_by_the_next_server(tmp_path: Path) -> None:
    with served() as server:
        server.begin(tmp_path)
        uri, _ = start(server, tmp_path, "kept", "")
        server.said("`kept` verified")
        server.leave()
    with served() as server:
        server.begin(tmp_path)
        server.open(tmp_path / "work" / "kept.cl", KERNEL.format(name="kept", note=""))
        assert lens(server, uri) == "Verified 2.31x: show diff"


def test_a_result_is_found_again_when_the_file_was_renamed(tmp_path: Path) -> None:
    with served() as server:
        server.begin(tmp_path)
        start(server, tmp_path, "moved", "")
        server.said("`moved` verified")
        uri = server.open(tmp_path / "work" / "other.cl", KERNEL.format(name="moved", note=""))
        assert lens(server, uri) == "Verified 2.31x: show diff"
        title = next(title for title in actions(server, uri) if title.startswith("Apply"))
        edit = actions(server, uri)[title]["edit"]
    assert isinstance(edit, dict)
    assert list(edit["changes"]) == [uri]


def test_a_job_of_another_window_is_left_alone(tmp_path: Path) -> None:
    with served() as first, served() as second:
        first.begin(tmp_path)
        uri, job = start(first, tmp_path, "mine")
        pid, born = worker_of(job)
        second.begin(tmp_path)
        second.open(tmp_path / "work" / "mine.cl", KERNEL.format(name="mine", note="slow"))
        assert lens(second, uri) == "Optimize"
        assert processes.alive(pid, born)
        first.leave()


def test_two_windows_cannot_resume_the_same_job(tmp_path: Path) -> None:
    with served() as server:
        server.begin(tmp_path)
        uri, job = start(server, tmp_path, "shared")
        worker_of(job)
        server.leave()
    with served() as first, served() as second:
        for server in (first, second):
            server.begin(tmp_path)
            server.open(tmp_path / "work" / "shared.cl", KERNEL.format(name="shared", note="slow"))
            assert lens(server, uri).startswith("Resume the interrupted search")
        assert first.run("resume", uri=uri, job=job.name) == {"job": job.name}
        assert second.run("resume", uri=uri, job=job.name) is None
        assert "another window optimizes `shared` already" in str(second.seen)
        first.leave()


def test_a_job_of_a_workspace_that_is_not_trusted_is_not_resumed(tmp_path: Path) -> None:
    with served() as server:
        server.begin(tmp_path)
        _, job = start(server, tmp_path, "shy")
        worker_of(job)
        server.leave()
    request = json.loads((job / "request.json").read_text())
    request["path"] = str(tmp_path / "elsewhere" / "shy.cl")
    (job / "request.json").write_text(json.dumps(request))
    with served() as server:
        server.begin(tmp_path)
        uri = server.open(tmp_path / "work" / "shy.cl", KERNEL.format(name="shy", note="slow"))
        assert server.run("resume", uri=uri, job=job.name) is None
        server.leave()


def test_damaged_job_folders_are_passed_over(tmp_path: Path) -> None:
    for name, content in {"empty": "", "torn": '{"job":', "old": '{"job": "old"}'}.items():
        (tmp_path / "data" / "jobs" / name).mkdir(parents=True)
        (tmp_path / "data" / "jobs" / name / "request.json").write_text(content)
    with served() as server:
        server.begin(tmp_path)
        uri = server.open(tmp_path / "work" / "k.cl", KERNEL.format(name="k", note=""))
        assert lens(server, uri) == "Trust this workspace and optimize"


def test_a_data_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "jobs").write_text("")
    with served() as server:
        server.begin(tmp_path)
        uri = server.open(tmp_path / "work" / "k.cl", KERNEL.format(name="k", note=""))
        assert server.run("trust", uri=uri, kernel="k") is None
        told = [m["params"]["message"] for m in server.seen if m.get("method") == "window/showMessage"]
    assert len(told) == 1
    assert f"cannot write {tmp_path / 'data' / 'jobs'}" in told[0]


def test_a_damaged_event_log_is_a_sentence(tmp_path: Path) -> None:
    with served() as server:
        server.begin(tmp_path)
        uri, job = start(server, tmp_path, "log", "")
        server.said("`log` verified")
        server.leave()
    (job / "events.jsonl").write_bytes(b'{"type":"nonsense"}\n')
    with served() as server:
        server.begin(tmp_path)
        server.open(tmp_path / "work" / "log.cl", KERNEL.format(name="log", note=""))
        assert "log cannot be read" in lens(server, uri)
