"""Jobs on disk: what is read of them, what is kept, and for how long."""

from __future__ import annotations

import os
import time
from pathlib import Path

import made_events as made
import msgspec
import pytest

from mb_agent import events
from mb_lsp import shelf
from mb_lsp.shelf import Job

OLD = time.time() - 8 * 24 * 3600


def job(folder: Path, *log: events.Event, old: bool = False) -> Job:
    events.write_request(folder, made.request())
    (folder / "events.jsonl").write_bytes(b"".join(map(events.encode, log)))
    if old:
        os.utime(folder / "request.json", (OLD, OLD))
    return Job(folder, "file:///k.cl", "/k.cl", "opencl", "twice", made.KERNEL.identity)


def again(one: Job) -> Job:
    return Job(one.folder, one.uri, one.path, one.target, one.name, one.identity)


def test_a_log_that_ended_is_read_from_its_summary(tmp_path: Path) -> None:
    first = job(tmp_path, made.started(), made.tried("a", 2.0), made.finished(made.offer(2.31)))
    known = first.log
    size = (tmp_path / "events.jsonl").stat().st_size
    (tmp_path / "events.jsonl").write_bytes(b"x" * size)  # were it read, it would be damaged
    assert again(first).log == known


def test_a_summary_of_a_log_that_grew_is_not_used(tmp_path: Path) -> None:
    first = job(tmp_path, made.started(), made.finished())
    assert first.log.offers == ()
    (tmp_path / "events.jsonl").write_bytes(events.encode(made.finished(made.offer(2.31))))
    assert len(again(first).log.offers) == 1


def test_a_log_that_did_not_end_has_no_summary(tmp_path: Path) -> None:
    assert job(tmp_path, made.started()).phase == "interrupted"
    assert not (tmp_path / "summary.json").exists()


def test_a_damaged_log_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    found = job(tmp_path / "job")
    (tmp_path / "job" / "events.jsonl").write_bytes(b"{]\n")
    assert isinstance(found.log.end, events.Failed)
    assert "cannot be read" in found.log.end.message


@pytest.mark.parametrize(("old", "gone"), [(True, True), (False, False)])
def test_a_job_that_found_nothing_is_kept_for_a_week(tmp_path: Path, old: bool, gone: bool) -> None:
    found = job(tmp_path / "job", made.finished(), old=old)
    assert (shelf.outdated([found]) == [found]) is gone


def test_a_job_with_a_result_is_kept_however_old(tmp_path: Path) -> None:
    assert shelf.outdated([job(tmp_path / "job", made.finished(made.offer(2.0)), old=True)]) == []


def test_an_interrupted_job_is_kept_however_old(tmp_path: Path) -> None:
    assert shelf.outdated([job(tmp_path / "job", made.started(), old=True)]) == []


def test_only_the_newest_jobs_of_a_kernel_are_kept(tmp_path: Path) -> None:
    result = made.finished(made.offer(2.0))
    jobs = [job(tmp_path / f"{n:02}", result) for n in range(shelf.MOST_OF_A_KERNEL + 2)]
    assert {each.id for each in shelf.outdated(jobs)} == {"00", "01"}


def test_what_a_search_cut_short_found_says_its_conditions(tmp_path: Path) -> None:
    tried = msgspec.structs.replace(made.tried("tile", 2.0), conditions=("the size is a multiple of 16",))
    found = job(tmp_path, made.started(), tried)
    assert not found.final
    assert [offer.conditions for offer in found.log.offers] == [("the size is a multiple of 16",)]


def test_unsaved_text_has_a_workspace_of_its_own(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "host.py").write_text("program.twice(queue, (n,), None, y, n)\n")
    folder = tmp_path / "jobs" / "job"
    path = shelf.private_path(folder, "opencl")
    shelf.prepare(folder, made.request(path=str(path)), "")
    assert [p.name for p in path.parent.iterdir()] == ["modelblaster.toml"]
    assert not path.exists()
