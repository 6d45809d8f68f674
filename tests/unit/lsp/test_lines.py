from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from mb_lsp.lines import Encoding, Lines

ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-32"])
# Line breaks, what only Python takes for one, characters of one to four bytes, and half a surrogate pair.
TEXTS = st.text(st.sampled_from("ab \r\n\f\v\x1c\x85\u2028é€😋\ud800"), max_size=60)

UNIT_BYTES = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
CODECS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


def units(text: str, encoding: Encoding) -> int:
    return len(text.encode(CODECS[encoding], "surrogatepass")) // UNIT_BYTES[encoding]


@given(TEXTS, ENCODINGS)
@example("a\r\nb", "utf-16")
@example("\r\r\n\n", "utf-8")
def test_every_offset_comes_back_from_its_position(text: str, encoding: Encoding) -> None:
    lines = Lines(text, encoding)
    for offset in range(len(text) + 1):
        inside_break = text[offset - 1 : offset + 1] == "\r\n" and offset > 0
        assert lines.offset(*lines.position(offset)) == (offset - 1 if inside_break else offset)


@given(TEXTS, ENCODINGS)
def test_a_column_counts_the_encodings_units_since_the_last_line_break(text: str, encoding: Encoding) -> None:
    lines = Lines(text, encoding)
    normal = text.replace("\r\n", "\n").replace("\r", "\n")
    offset = 0
    for number, line in enumerate(normal.split("\n")):
        assert lines.position(offset + len(line)) == (number, units(line, encoding))
        offset += len(line) + (2 if text.startswith("\r\n", offset + len(line)) else 1)


@given(TEXTS)
def test_the_lines_and_their_breaks_are_the_whole_text(text: str) -> None:
    lines = Lines(text)
    parts = [text[lines.start(n) : lines.start(n + 1)] for n in range(len(lines))]
    assert "".join(parts) == text
    assert all("\n" not in part[:-1].rstrip("\r") for part in parts)


def test_form_feeds_and_line_separators_end_no_line() -> None:
    assert Lines("a\fb\u2028c\nd").position(6) == (1, 0)


def test_a_column_past_the_line_is_the_lines_end() -> None:
    assert Lines("ab\r\ncd").offset(0, 99) == 2


def test_a_line_past_the_text_is_the_texts_end() -> None:
    assert Lines("ab\ncd").offset(7, 3) == 5


def test_a_column_inside_a_character_rounds_down() -> None:
    assert Lines("😋x", "utf-16").offset(0, 1) == 0
