import subprocess

import pytest

from mb_agent.diff import edited, unified
from mb_targets.model import DocumentEdits, TextEdit


@pytest.mark.parametrize("tail", ["\n", ""])
def test_patch_makes_of_the_diff_what_the_edits_make(tmp_path, tail):
    text = "one\ntwo\nthree" + tail
    path = tmp_path / "k.cl"
    path.write_text(text)
    edits = (TextEdit(4, 7, "zwei"), TextEdit(8, 13, "drei"))
    diff = unified([DocumentEdits(str(path), "", edits)], str(path), text)
    subprocess.run(["patch", "-s", str(path)], input=diff.encode(), check=True, timeout=20)
    assert path.read_text() == edited(text, edits) == "one\nzwei\ndrei" + tail


def test_the_text_at_the_jobs_start_counts_not_the_disks(tmp_path):
    path = tmp_path / "k.cl"
    path.write_text("changed since\n")
    diff = unified([DocumentEdits(str(path), "", (TextEdit(0, 1, "b"),))], str(path), "a\n")
    assert "-a\n+b\n" in diff


def test_other_documents_are_read_from_the_disk(tmp_path):
    host = tmp_path / "host.c"
    host.write_text("run(1);\n")
    diff = unified([DocumentEdits(str(host), "", (TextEdit(4, 5, "2"),))], str(tmp_path / "k.cl"), "")
    assert "+run(2);" in diff
