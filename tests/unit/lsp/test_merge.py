from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mb_lsp.review import merge
from mb_lsp.splice import hunks
from mb_targets.model import TextEdit

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "\n", "d"]), max_size=12).map("".join)


def spliced(text: str, edits: list[TextEdit]) -> str:
    for edit in reversed(edits):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


@given(LINES, LINES, LINES)
def test_hunks_make_the_whole_edit(head: str, old: str, new: str) -> None:
    text = head + old + "tail"
    edit = TextEdit(len(head), len(head) + len(old), new)
    assert spliced(text, list(hunks(text, edit))) == spliced(text, [edit])


@given(LINES, LINES)
def test_hunks_leave_equal_lines_alone(head: str, same: str) -> None:
    text = head + same
    assert list(hunks(text, TextEdit(len(head), len(text), same))) == []


@given(LINES, LINES)
def test_a_change_of_unchanged_text_is_made_as_it_is(base: str, changed: str) -> None:
    assert merge(base, changed, base) == changed


def test_a_change_follows_its_lines_when_they_move() -> None:
    assert merge("x\na\nb\n", "x\nA\nb\n", "new\nx\na\nb\n") == "new\nx\nA\nb\n"


def test_edits_beside_the_change_are_kept() -> None:
    assert merge("a\nb\nc\nd\n", "a\nb\nC\nd\n", "a // note\nb\nc\nd\n") == "a // note\nb\nC\nd\n"


def test_a_change_of_lines_that_changed_too_is_refused() -> None:
    assert merge("a\nb\nc\n", "a\nB\nc\n", "a\nbb\nc\n") is None


def test_an_insertion_where_something_was_inserted_is_refused() -> None:
    assert merge("a\nb\n", "a\nnew\nb\n", "a\nother\nb\n") is None


def test_lines_are_added_at_the_end() -> None:
    assert merge("a\nb\n", "a\nb\nc\n", "x\na\nb\n") == "x\na\nb\nc\n"
