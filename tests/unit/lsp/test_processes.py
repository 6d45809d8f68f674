from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from mb_lsp import processes
from mb_lsp.problems import Code, CommandError

# A child in a group of its own that has a child in yet another group; both ids are printed.
FAMILY = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(child.pid, flush=True)
time.sleep(600)
"""


def start_family() -> tuple[subprocess.Popen[str], int]:
    parent = subprocess.Popen(
        [sys.executable, "-c", FAMILY], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert parent.stdout is not None
    return parent, int(parent.stdout.readline())


def gone(pid: int, born: str) -> bool:
    for _ in range(200):
        if not processes.alive(pid, born):
            return True
        time.sleep(0.01)
    return False


def test_a_killed_tree_takes_groups_of_its_descendants_along() -> None:
    parent, child = start_family()
    born = processes.birth(child)
    with parent:
        processes.kill_tree(parent.pid)
        assert gone(child, born)


def test_the_killer_itself_is_left_alive() -> None:
    parent, _ = start_family()
    with parent:
        processes.kill_tree(parent.pid)
        assert parent.wait(10) == -9


def test_killing_what_has_ended_does_nothing() -> None:
    done = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    done.wait(30)
    processes.kill_tree(done.pid)


def test_another_life_of_a_process_id_is_not_taken_for_it() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert processes.alive(child.pid, processes.birth(child.pid))
        assert not processes.alive(child.pid, "1")


def test_a_job_does_not_import_from_the_folder_it_is_started_in(tmp_path: Path) -> None:
    (tmp_path / "msgspec.py").write_text("raise SystemExit('imported from the workspace')")
    command = [*processes.job_command()[:-2], "-c", "import msgspec"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)


def test_a_job_is_refused_in_one_sentence_where_it_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(CommandError, match="optimizing needs Linux") as caught:
        processes.require_platform()
    assert caught.value.code == Code.DEVICE
