from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mb_lsp.documents import Documents, span

TEXTS = st.text(st.sampled_from("ab\n"), max_size=20)


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_the_changed_span_makes_the_new_text_of_the_old(head: str, old: str, new: str, tail: str) -> None:
    before, after = head + old + tail, head + new + tail
    start, old_end, new_end = span(before, after)
    assert before[:start] + after[start:new_end] + before[old_end:] == after
    assert start <= old_end
    assert start <= new_end


@given(TEXTS, st.sampled_from("xyz"), TEXTS)
def test_a_single_inserted_character_is_the_whole_span(head: str, inserted: str, tail: str) -> None:
    assert span(head + tail, head + inserted + tail) == (len(head), len(head), len(head) + 1)


def test_an_open_document_is_found_by_a_link_to_it(tmp_path: Path) -> None:
    file, link = tmp_path / "host.c", tmp_path / "link.c"
    file.write_text("")
    link.symlink_to(file)
    documents = Documents()
    opened = documents.open("file:///link.c", link, "c", 1, "")
    assert documents.at(file) is opened
    assert documents.at(tmp_path / "other.c") is None
