"""Comments put above a kernel: inside the string that holds it, and beside what the user wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from mb_lsp.documents import Documents
from mb_lsp.edits import insertion
from mb_lsp.lines import Lines

BODY = "void twice(__global float *y, int n)\n{\n    y[get_global_id(0)] *= 2.0f;\n}\n"
KERNEL = f"__kernel {BODY}"


def commented(text: str, comment: str, replace: bool, name: str = "k.cl", language: str = "opencl") -> str:
    documents = Documents("utf-16")
    document = documents.open("file:///k", Path("/nowhere") / name, language, 1, text)
    (placed,) = document.kernels
    edit = insertion(document, placed, comment, replace)
    lines = Lines(text, "utf-16")
    start = lines.offset(edit.range.start.line, edit.range.start.character)
    end = lines.offset(edit.range.end.line, edit.range.end.character)
    return text[:start] + edit.new_text + text[end:]


def test_an_answer_leaves_the_lines_that_are_there() -> None:
    before = f"// mb: global=(n,) n=1024\n{KERNEL}"
    after = commented(before, "// mb: y=f32[?]", replace=False)
    assert after == f"// mb: global=(n,) n=1024\n// mb: y=f32[?]\n{KERNEL}"


def test_a_launch_takes_the_place_of_the_lines_that_are_there() -> None:
    before = f"// mb: file tol=1e-3\n// mb: global=(n,)\n// mb: n=7\n{KERNEL}"
    after = commented(before, "// mb: global=(n,) n=1024", replace=True)
    assert after == f"// mb: file tol=1e-3\n// mb: global=(n,) n=1024\n{KERNEL}"


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize(
    ("head", "tail", "name", "language"),
    [('SOURCE = """', '"""\n', "host.py", "python"), ('const char *s = R"(', ')";\n', "host.cpp", "cpp")],
)
def test_a_comment_stays_inside_the_string(
    head: str, tail: str, name: str, language: str, replace: bool
) -> None:
    after = commented(f"{head}{KERNEL}{tail}", "// mb: n=7", replace, name, language)
    assert after == f"{head}// mb: n=7\n{KERNEL}{tail}"


def test_a_launch_on_the_first_line_of_a_string_is_replaced_inside_it() -> None:
    after = commented(f'S = """// mb: n=8\n{KERNEL}"""\n', "// mb: n=7", True, "host.py", "python")
    assert after == f'S = """// mb: n=7\n{KERNEL}"""\n'


def test_a_comment_is_indented_as_its_kernel_is() -> None:
    after = commented(f"\n    {KERNEL}", "// mb: n=7", replace=False)
    assert after == f"\n    // mb: n=7\n    {KERNEL}"
