"""Processes that the command line starts: a job's, and the server that is measured."""

from __future__ import annotations

from pathlib import Path

import made_events as made
import pytest

from mb_agent import events
from mb_lsp import bench_server, follow
from mb_lsp.problems import Code, CommandError
from mb_lsp.rpc import Client


def test_a_damaged_request_ends_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text("{")
    process = follow.JobProcess(tmp_path)
    *_, last = process.events()
    process.close()
    assert isinstance(last, events.Failed)
    assert "Traceback" not in last.message


def test_a_job_that_was_killed_says_so(tmp_path: Path) -> None:
    events.write_request(tmp_path, made.request())
    process = follow.JobProcess(tmp_path)
    process.cancel()
    *_, last = process.events()
    process.close()
    assert isinstance(last, events.Failed)
    assert "killed by signal 9" in last.message


def test_a_folder_that_cannot_be_written_is_the_users_to_choose() -> None:
    with pytest.raises(CommandError, match="MODELBLASTER_HOME") as raised:
        follow.prepare(Path("/proc/nowhere"), made.request())
    assert raised.value.code == Code.INPUT


def test_the_measured_server_answers_and_its_cost_is_read(tmp_path: Path) -> None:
    place = bench_server.Place(tmp_path / "home", tmp_path)
    client = Client(place.environment())
    folder = {"processId": None, "rootUri": tmp_path.as_uri(), "capabilities": {}}
    answer = client.request("initialize", folder)
    cpu, memory = client.cpu(), client.private_bytes()
    client.close()
    assert answer["capabilities"]
    assert cpu > 0
    assert memory > 0
