"""Host programs are searched within the workspace, and only launches of this kernel are edited."""

from __future__ import annotations

from pathlib import Path

import pytest
from patched import COMMENT, KERNEL, PYTHON, edits, host, patched, write

from mb_targets.model import LaunchChange, NotApplicable
from mb_targets.opencl import host as host_module
from mb_targets.opencl.detect import find_kernels
from mb_targets.opencl.launch import infer_launch

LAUNCH = "program.scale(queue, (n,), None, x, n)"
MULTIPLES = LaunchChange(("G0 / 16",), None, (16, 1, 1))


@pytest.mark.parametrize("call", ["np.scale(a, b, out)", "k = np.scale\nk(a, b, out)"])
def test_a_function_of_another_module_is_no_launch(tmp_path: Path, call: str) -> None:
    program = "import numpy as np\n" + PYTHON.format(setup=call, call=LAUNCH)
    write(tmp_path, "run.py", program)
    assert call in patched(write(tmp_path, "a.cl", COMMENT + KERNEL))["run.py"]


@pytest.mark.parametrize(
    "setup",
    [
        "class A:\n    def __init__(self): self.p = program\n    def run(self): self.p.scale(q, (n,), None)",
        "def run(given: cl.Program): given.scale(q, (n,), None)",
        "def made(): return cl.Program(context, text).build()\nother = made()\nother.scale(q, (n,), None)",
    ],
)
def test_a_program_is_followed_through_names_and_functions(tmp_path: Path, setup: str) -> None:
    write(tmp_path, "run.py", PYTHON.format(setup=setup, call=""))
    assert "scale(q, ((n + 15) // 16,), (1,))" in patched(write(tmp_path, "a.cl", COMMENT + KERNEL))["run.py"]


def test_a_program_of_another_project_with_a_kernel_file_of_the_same_name_is_left_alone(
    tmp_path: Path,
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a.cl").write_text(KERNEL)
    write(tmp_path, "other/run.py", PYTHON.format(setup="", call=LAUNCH).replace("größe", ""))
    assert list(patched(write(tmp_path, "a.cl", COMMENT + KERNEL))) == ["a.cl"]


def test_a_name_that_may_mean_another_file_blocks_the_edit(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a.cl").write_text(KERNEL)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/run.py").write_text(
        PYTHON.format(setup="", call=LAUNCH).replace("a.cl", "kernels/a.cl")
    )
    made = edits(write(tmp_path, "a.cl", COMMENT + KERNEL))
    assert isinstance(made, NotApplicable)
    assert "several files called a.cl" in made.reason


def test_a_second_file_with_a_kernel_of_the_same_name_blocks_the_edit(tmp_path: Path) -> None:
    write(tmp_path, "b.cl", KERNEL)
    write(
        tmp_path,
        "run.py",
        PYTHON.format(setup='other = cl.Program(context, open("b.cl").read())', call=LAUNCH),
    )
    made = edits(write(tmp_path, "a.cl", COMMENT + KERNEL))
    assert isinstance(made, NotApplicable)
    assert "b.cl is loaded too" in made.reason


def test_a_kernel_given_to_a_function_is_whichever_its_callers_pass(tmp_path: Path) -> None:
    setup = "k = program.scale\ndef run(k): k(queue, (n,), None)\nrun(program.other)"
    write(tmp_path, "run.py", PYTHON.format(setup=setup, call="k(queue, (n,), None)"))
    assert isinstance(edits(write(tmp_path, "a.cl", COMMENT + KERNEL)), NotApplicable)


def test_a_launch_of_a_parameter_is_left_alone_where_this_kernel_is_not_passed(tmp_path: Path) -> None:
    other = """void run(cl_kernel scale, size_t n) {
    clEnqueueNDRangeKernel(queue, scale, 1, NULL, &n, NULL, 0, NULL, NULL);
}
"""
    write(tmp_path, "main.c", host("", "(size_t[]){n}", "NULL") + other)
    found = patched(write(tmp_path, "a.cl", COMMENT + KERNEL))["main.c"]
    assert found == host("", "(size_t[]){(n + 15) / 16}", "(const size_t[]){1}") + other


@pytest.mark.parametrize(("imported", "blocks"), [("pandas", False), ("launcher", True)])
def test_a_name_in_text_counts_where_something_near_may_launch_it(
    tmp_path: Path, imported: str, blocks: bool
) -> None:
    write(tmp_path, "launcher.py", "")
    write(tmp_path, "run.py", f"import {imported} as m\nm.run('scale', n)\n")
    assert isinstance(edits(write(tmp_path, "a.cl", COMMENT + KERNEL)), NotApplicable) == blocks


def test_a_repository_is_searched_whole_though_a_part_has_a_build_file(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/CMakeLists.txt").write_text("")
    (tmp_path / "kernels/a.cl").write_text(COMMENT + KERNEL)
    write(tmp_path, "run.py", PYTHON.format(setup="", call=LAUNCH))
    assert set(patched(tmp_path / "kernels/a.cl")) == {"a.cl", "run.py"}


def test_the_home_folder_is_no_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".git").mkdir()
    (tmp_path / "work").mkdir()
    assert host_module.root(tmp_path / "work/a.cl") == tmp_path / "work"


def test_a_document_in_the_home_folder_has_no_workspace_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "work").mkdir()
    write(tmp_path, "work/run.py", PYTHON.format(setup="", call=LAUNCH))
    assert list(patched(write(tmp_path, "a.cl", COMMENT + KERNEL))) == ["a.cl"]


def test_a_workspace_too_large_to_search_blocks_a_change_of_the_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_module, "_MOST_FILES", 3)
    path = write(tmp_path, "a.cl", COMMENT + KERNEL)
    for number in range(5):
        (tmp_path / f"m{number}.py").write_text("")
    made = edits(path)
    assert isinstance(made, NotApplicable)
    assert "more than 3 programs" in made.reason
    assert not isinstance(edits(path, change=None), NotApplicable)


def test_a_program_that_is_not_text_blocks_a_change_of_the_launch(tmp_path: Path) -> None:
    path = write(tmp_path, "a.cl", COMMENT + KERNEL)
    (tmp_path / "main.c").write_bytes("/* größe: scale */".encode("latin-1"))
    made = edits(path)
    assert isinstance(made, NotApplicable)
    assert "main.c is not in UTF-8" in made.reason


@pytest.mark.parametrize(
    ("setup", "size", "offered"),
    [
        ("N = 4096", "N", True),
        ("N = 100", "N", False),
        ("", "(m + 63) // 64 * 64", True),
        ("N = 4096\nN = int(input())", "N", False),
        ("N = 4096\nN += 1", "N", False),
        ("N = 4096\ndef run(N): pass", "N", False),
        ("", "x.size", False),
    ],
)
def test_a_variant_for_multiples_is_offered_where_the_host_passes_them(
    tmp_path: Path, setup: str, size: str, offered: bool
) -> None:
    write(tmp_path, "run.py", PYTHON.format(setup=setup, call=f"program.scale(queue, ({size},), None, x, n)"))
    made = edits(write(tmp_path, "a.cl", COMMENT + KERNEL), change=MULTIPLES)
    assert isinstance(made, NotApplicable) != offered
    if isinstance(made, NotApplicable):
        assert "which the call at run.py:" in made.reason


def test_the_settings_are_rewritten_with_the_host_program(tmp_path: Path) -> None:
    settings = '[opencl.scale]\nglobal = "(n,)" # all\nn = 1024\n\n[opencl.other]\nglobal = "(n,)"\n'
    write(tmp_path, "modelblaster.toml", settings)
    write(tmp_path, "run.py", PYTHON.format(setup="", call=LAUNCH))
    path = write(tmp_path, "a.cl", KERNEL)
    found = patched(path, options=("-cl-mad-enable",))
    assert found["modelblaster.toml"] == (
        '[opencl.scale]\nlocal = "(1,)"\nopts = "-cl-mad-enable"\nglobal = "((n+15)/16,)" # all\nn = 1024\n'
        '\n[opencl.other]\nglobal = "(n,)"\n'
    )
    assert "((n + 15) // 16,), (1,)" in found["run.py"]


def test_settings_that_cannot_be_edited_block_a_change_of_the_launch(tmp_path: Path) -> None:
    write(tmp_path, "modelblaster.toml", 'opencl = {scale = {global = "(n,)", n = 1024}}\n')
    made = edits(write(tmp_path, "a.cl", KERNEL))
    assert isinstance(made, NotApplicable)
    assert "modelblaster.toml" in made.reason


@pytest.mark.parametrize(
    ("prefix", "written"),
    [
        ("if (n < 1) { stop(); } else ", "else { const size_t scale_local_size[] = {1}; clEnqueueNDRange"),
        ("for (;;) ", "for (;;) { const size_t scale_local_size[] = {1}; clEnqueueNDRange"),
        ("again: ", "again: { const size_t scale_local_size[] = {1}; clEnqueueNDRange"),
        ("status = ", "const size_t scale_local_size[] = {1};\n    status = clEnqueueNDRange"),
    ],
)
def test_a_variable_in_cpp_stands_in_the_branch_of_the_call(
    tmp_path: Path, prefix: str, written: str
) -> None:
    program = host("size_t g[1] = {size_t(n)};", "g", "nullptr")
    write(tmp_path, "main.cpp", program.replace("if (n > 0)\n        ", prefix))
    assert written in patched(write(tmp_path, "a.cl", COMMENT + KERNEL))["main.cpp"]


def test_a_statement_that_is_a_macro_s_is_not_edited(tmp_path: Path) -> None:
    program = host("size_t g[1] = {size_t(n)};", "g", "nullptr")
    write(tmp_path, "main.cpp", program.replace("if (n > 0)\n        ", "EACH(queue) "))
    assert isinstance(edits(write(tmp_path, "a.cl", COMMENT + KERNEL)), NotApplicable)


def test_a_macro_may_be_defined_by_an_option_of_two_words() -> None:
    text = f'// mb: opts="-D LAST=n"\n{KERNEL.replace("i < n", "i < LAST")}'
    assert infer_launch(find_kernels(text, "opencl")[0], None).__class__.__name__ == "LaunchSpec"
