"""Edits on disk: all or none, mode and line endings kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mb_lsp.problems import CommandError
from mb_lsp.write import apply_edits
from mb_targets.model import DocumentEdits, TextEdit, digest


def edits_of(path: Path, text: str, *edits: TextEdit) -> DocumentEdits:
    return DocumentEdits(str(path), digest(text), edits)


def test_an_edit_is_written(tmp_path: Path) -> None:
    file = tmp_path / "k.cl"
    file.write_text("one two three")
    assert apply_edits([edits_of(file, "one two three", TextEdit(4, 7, "2"))]) == [file]
    assert file.read_text() == "one 2 three"


def test_several_edits_of_one_file_keep_their_places(tmp_path: Path) -> None:
    file = tmp_path / "k.cl"
    file.write_text("one two three")
    apply_edits([edits_of(file, "one two three", TextEdit(0, 3, "first"), TextEdit(8, 13, "3"))])
    assert file.read_text() == "first two 3"


def test_the_mode_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "k.cl"
    file.write_text("x")
    file.chmod(0o751)
    apply_edits([edits_of(file, "x", TextEdit(0, 1, "y"))])
    assert file.stat().st_mode & 0o777 == 0o751


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "k.cl", tmp_path / "link.cl"
    file.write_text("x")
    link.symlink_to(file)
    apply_edits([edits_of(link, "x", TextEdit(0, 1, "y"))])
    assert link.is_symlink()
    assert file.read_text() == "y"


@pytest.mark.parametrize("seen", ["a\r\nb\r\n", "a\nb\n"])
def test_windows_line_ends_are_kept_whichever_text_the_edit_was_made_for(tmp_path: Path, seen: str) -> None:
    file = tmp_path / "k.cl"
    file.write_bytes(b"a\r\nb\r\n")
    at = seen.index("b")
    apply_edits([edits_of(file, seen, TextEdit(at, at + 1, "c\nd"))])
    assert file.read_bytes() == b"a\r\nc\r\nd\r\n"


def test_a_byte_order_mark_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "k.cl"
    file.write_bytes(b"\xef\xbb\xbfa\nb\n")
    apply_edits([edits_of(file, "\ufeffa\nb\n", TextEdit(3, 4, "c"))])
    assert file.read_bytes() == b"\xef\xbb\xbfa\nc\n"


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "k.cl"
    file.write_text("changed")
    with pytest.raises(CommandError, match="changed since"):
        apply_edits([edits_of(file, "as it was", TextEdit(0, 1, "y"))])


def test_no_file_is_written_when_one_of_two_changed(tmp_path: Path) -> None:
    first, second = tmp_path / "a.cl", tmp_path / "b.c"
    first.write_text("x")
    second.write_text("changed")
    with pytest.raises(CommandError):
        apply_edits([edits_of(first, "x", TextEdit(0, 1, "y")), edits_of(second, "z", TextEdit(0, 1, "y"))])
    assert first.read_text() == "x"


def test_nothing_is_left_beside_a_file_that_could_not_be_written(tmp_path: Path) -> None:
    first = tmp_path / "a.cl"
    first.write_text("x")
    missing = tmp_path / "gone" / "b.c"
    with pytest.raises(CommandError):
        apply_edits([edits_of(first, "x", TextEdit(0, 1, "y")), edits_of(missing, "x", TextEdit(0, 1, "y"))])
    assert os.listdir(tmp_path) == ["a.cl"]


def test_a_failure_at_the_second_file_puts_the_first_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "a.cl", tmp_path / "b.c"
    for file in (first, second):
        file.write_text("x")
    replace = Path.replace

    def refuse(source: Path, target: Path) -> Path:
        if target.name == "b.c":
            raise OSError(30, "Read-only file system", str(target))
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(CommandError, match="nothing was applied"):
        apply_edits([edits_of(file, "x", TextEdit(0, 1, "y")) for file in (first, second)])
    assert (first.read_text(), second.read_text()) == ("x", "x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.cl", "b.c"]
