"""A variant becomes edits of the kernel and of every place that states its launch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patched import COMMENT, KERNEL, PYTHON, applied, edits, host, patched, variant_of, write

from mb_targets.model import LaunchChange, LaunchSpec, NotApplicable
from mb_targets.opencl.detect import find_kernels
from mb_targets.opencl.hunks import apply, hunks
from mb_targets.opencl.launch import infer_launch
from mb_targets.opencl.patch import patch


def test_only_the_lines_that_differ_are_edited(tmp_path: Path) -> None:
    made = edits(write(tmp_path, "a.cl", COMMENT + KERNEL), change=None)
    assert not isinstance(made, NotApplicable)
    (edit,) = made[0].edits
    assert (edit.end - edit.start) < 30
    assert "größe" not in edit.text


def test_a_comment_that_states_the_launch_is_rewritten(tmp_path: Path) -> None:
    text = patched(write(tmp_path, "a.cl", COMMENT + KERNEL))["a.cl"]
    assert text.startswith("// mb: global=((n+15)/16,) local=(1,) n=1024 x=inout f32[n]\n")
    again = infer_launch(find_kernels(text, "opencl")[0], None)
    assert isinstance(again, LaunchSpec)
    assert (again.global_size, again.local_size) == (("(n+15)/16",), ("1",))


def test_windows_line_ends_stay(tmp_path: Path) -> None:
    text = patched(write(tmp_path, "a.cl", (COMMENT + KERNEL).replace("\n", "\r\n")))["a.cl"]
    assert text.count("\n") == text.count("\r\n") == 9


def test_options_that_a_variant_adds_stand_in_the_comment(tmp_path: Path) -> None:
    text = patched(write(tmp_path, "a.cl", COMMENT + KERNEL), change=None, options=("-cl-mad-enable",))[
        "a.cl"
    ]
    assert '// mb: opts="-cl-mad-enable"\n__kernel' in text


MULTIPLES = LaunchChange(("G0/16",), None, (16, 1, 1))


def test_a_variant_for_multiples_is_offered_where_the_comment_promises_them(tmp_path: Path) -> None:
    stated = COMMENT.replace("n=1024", "n=1024 n%32")
    text = patched(write(tmp_path, "a.cl", stated + KERNEL), change=MULTIPLES)
    assert "global=(n/16,) local=none" in text["a.cl"]


def test_a_variant_for_multiples_is_not_offered_where_nothing_promises_them(tmp_path: Path) -> None:
    made = edits(write(tmp_path, "a.cl", COMMENT + KERNEL), change=MULTIPLES)
    assert isinstance(made, NotApplicable)
    assert "multiples of 16, which what is said about the sizes of `scale` does not promise" in made.reason


def test_a_kernel_that_changed_since_is_not_edited(tmp_path: Path) -> None:
    path = write(tmp_path, "a.cl", COMMENT + KERNEL)
    kernel = find_kernels(COMMENT + KERNEL, "opencl")[0]
    launch = infer_launch(kernel, path)
    assert isinstance(launch, LaunchSpec)
    made = patch(kernel, launch, variant_of(kernel), path, (COMMENT + KERNEL).replace("2.0f", "3.0f"))
    assert isinstance(made, NotApplicable)


def test_a_kernel_that_only_moved_is_edited_where_it_is_now(tmp_path: Path) -> None:
    path = write(tmp_path, "a.cl", "// one line more\n" + COMMENT + KERNEL)
    kernel = find_kernels(COMMENT + KERNEL, "opencl")[0]
    launch = infer_launch(kernel, path)
    assert isinstance(launch, LaunchSpec)
    made = patch(kernel, launch, variant_of(kernel), path, path.read_text())
    assert not isinstance(made, NotApplicable)
    assert applied(made[0]).startswith("// one line more\n// mb: global=((n+15)/16,)")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            ("size_t global[1] = {n}, local[] = {64};", "global", "local"),
            ("size_t global[1] = {(n + 15) / 16}, local[] = {1};", "global", "local"),
        ),
        (
            ("size_t global[1] = {n};\n    size_t local[1] = {64};", "global", "local"),
            ("size_t global[1] = {(n + 15) / 16};\n    size_t local[1] = {1};", "global", "local"),
        ),
        (
            ("const size_t gws = (n + 63) / 64 * 64;", "&gws", "NULL"),
            ("const size_t gws = ((n + 63) / 64 * 64 + 15) / 16;", "&gws", "(const size_t[]){1}"),
        ),
        (
            ("size_t g[3];\n    g[0] = n << 1;", "g", "NULL"),
            ("size_t g[3];\n    g[0] = ((n << 1) + 15) / 16;", "g", "(const size_t[]){1}"),
        ),
        (
            ("size_t g[1] = {n}; g[0] += 63 - (n - 1) % 64;", "g", "NULL"),
            (
                "size_t g[1] = {n}; g[0] += 63 - (n - 1) % 64;",
                "(const size_t[]){(g[0] + 15) / 16}",
                "(const size_t[]){1}",
            ),
        ),
        (
            ("", "(size_t[]){n}", "(size_t[]){64}"),
            ("", "(size_t[]){(n + 15) / 16}", "(size_t[]){1}"),
        ),
    ],
)
def test_a_launch_in_c_is_rewritten_with_the_kernel(
    tmp_path: Path, before: tuple[str, str, str], after: tuple[str, str, str]
) -> None:
    write(tmp_path, "main.c", host(*before))
    found = patched(write(tmp_path, "a.cl", COMMENT + KERNEL))
    assert found["main.c"] == host(*after)
    assert "global=((n+15)/16,)" in found["a.cl"]


def test_cpp_gets_a_variable_where_c_has_a_literal(tmp_path: Path) -> None:
    write(tmp_path, "main.cpp", host("size_t g[1] = {size_t(n)};", "g", "nullptr"))
    text = patched(write(tmp_path, "a.cl", COMMENT + KERNEL))["main.cpp"]
    assert "        { const size_t scale_local_size[] = {1}; clEnqueueNDRangeKernel(" in text
    assert "0, NULL, NULL); }\n}" in text
    assert "size_t g[1] = {((size_t(n)) + 15) / 16};" in text
    assert "NULL, g, scale_local_size, 0" in text


def test_the_cpp_bindings_are_rewritten(tmp_path: Path) -> None:
    program = (
        'cl::Kernel k(program, "scale");\n// a.cl\ncl::NDRange all(n);\n'
        "queue.enqueueNDRangeKernel(k, cl::NullRange, all, cl::NullRange);\n"
    )
    write(tmp_path, "main.cpp", program)
    text = patched(write(tmp_path, "a.cl", COMMENT + KERNEL))["main.cpp"]
    assert "cl::NDRange all((n + 15) / 16);" in text
    assert "all, cl::NDRange(1));" in text


@pytest.mark.parametrize(
    ("setup", "call", "after"),
    [
        ("", "program.scale(queue, (n,), None, x, n)", "program.scale(queue, ((n + 15) // 16,), (1,), x, n)"),
        (
            "k = program.scale",
            "k(queue, x.shape, (64,), x, n)",
            "k(queue, ((x.shape[0] + 15) // 16,), (1,), x, n)",
        ),
        (
            'k = cl.Kernel(program, "scale")',
            "cl.enqueue_nd_range_kernel(queue, k, [a.size * 2], None)",
            "cl.enqueue_nd_range_kernel(queue, k, [((a.size * 2) + 15) // 16], (1,))",
        ),
    ],
)
def test_a_launch_in_python_is_rewritten_with_the_kernel(
    tmp_path: Path, setup: str, call: str, after: str
) -> None:
    write(tmp_path, "run.py", PYTHON.format(setup=setup, call=call))
    found = patched(write(tmp_path, "a.cl", COMMENT + KERNEL))
    assert found["run.py"] == PYTHON.format(setup=setup, call=after)


def test_a_kernel_in_a_python_string_and_its_launch_are_edited_together(tmp_path: Path) -> None:
    text = f'SOURCE = """{KERNEL}"""\nprogram = cl.Program(context, SOURCE).build()\n'
    text += "program.scale(queue, (n,), (64,), x, n)\n"
    text = text.replace('"""__', f'"""\n{COMMENT}__')
    found = patched(write(tmp_path, "run.py", text), "python")
    assert list(found) == ["run.py"]
    assert "((n + 15) // 16,), (1,), x, n)" in found["run.py"]
    assert "size_t i = get_global_id(0);" in found["run.py"]


def test_options_go_to_where_the_program_is_built(tmp_path: Path) -> None:
    write(tmp_path, "run.py", PYTHON.format(setup="", call="program.scale(queue, (n,), None, x, n)"))
    found = patched(write(tmp_path, "a.cl", COMMENT + KERNEL), change=None, options=("-cl-mad-enable",))
    assert '.build(options=["-cl-mad-enable"])' in found["run.py"]


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("main.c", host("size_t *g = sizes();", "g", "NULL")),
        ("main.c", 'kernels[3] = make(program, "scale"); /* a.cl */'),
        ("main.c", host("", "(size_t[]){n}", "NULL") + 'void g(void) { start("scale"); }'),
        (
            "main.c",
            "#define GO(scale) clEnqueueNDRangeKernel(q, scale, 1, 0, g, 0, 0, 0, 0)\n"
            + host("GO(scale);", "(size_t[]){n}", "NULL"),
        ),
        ("main.c", host("start(scale, n);", "(size_t[]){n}", "NULL")),
        ("main.c", host("", "(size_t[]){n}", "NULL") + 'const char *all[] = {"scale"};'),
        ("run.py", PYTHON.format(setup="start(program.scale)", call="program.scale(queue, (n,), None)")),
        ("run.py", PYTHON.format(setup="", call="program.scale(queue, (n,), None)\nstart('scale', n)")),
        ("run.py", PYTHON.format(setup="k = program.scale\nk = other", call="k(queue, (n,), None)")),
        ("run.py", PYTHON.format(setup="", call="given.scale(queue, (n,), None)")),
        ("run.py", PYTHON.format(setup="", call="program.scale(queue, sizes(n), None, x, n)")),
        ("run.py", PYTHON.format(setup="", call='getattr(program, "scale")(queue, (n,), None, x, n)')),
    ],
)
def test_a_launch_that_cannot_be_edited_safely_is_named_and_nothing_is_changed(
    tmp_path: Path, name: str, program: str
) -> None:
    write(tmp_path, name, program)
    made = edits(write(tmp_path, "a.cl", COMMENT + KERNEL))
    assert isinstance(made, NotApplicable)
    assert f"{name}:" in made.reason


def test_a_kernel_of_the_same_name_in_another_file_is_left_alone(tmp_path: Path) -> None:
    write(
        tmp_path, "other.py", PYTHON.replace("a.cl", "b.cl").format(setup="", call="p.scale(q, (n,), None)")
    )
    assert list(patched(write(tmp_path, "a.cl", COMMENT + KERNEL))) == ["a.cl"]


DECLARATIONS = """#include <stddef.h>
typedef struct x *cl_program, *cl_command_queue, *cl_mem, *cl_kernel;
typedef int cl_int;
cl_kernel clCreateKernel(cl_program, const char *, cl_int *);
int clSetKernelArg(cl_kernel, unsigned, size_t, const void *);
int clEnqueueNDRangeKernel(cl_command_queue, cl_kernel, unsigned, const size_t *, const size_t *,
                           const size_t *, unsigned, const void *, void *);
"""


def test_the_edited_host_program_compiles(tmp_path: Path) -> None:
    write(tmp_path, "main.c", host("size_t g[1] = {n};", "g", "NULL"))
    text = patched(write(tmp_path, "a.cl", COMMENT + KERNEL))["main.c"]
    program = DECLARATIONS + text.replace("#include <CL/cl.h>", "")
    command = ["cc", "-std=c99", "-Wall", "-Werror", "-fsyntax-only", "-xc", "-"]
    done = subprocess.run(command, input=program, text=True, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_an_edited_python_program_compiles(tmp_path: Path) -> None:
    write(tmp_path, "run.py", PYTHON.format(setup="", call="program.scale(queue, x.shape, None, x, n)"))
    text = patched(write(tmp_path, "a.cl", COMMENT + KERNEL))["run.py"]
    done = subprocess.run([sys.executable, "-c", f"compile({text!r}, 'x', 'exec')"], check=False, timeout=60)
    assert done.returncode == 0


LINES = st.lists(st.sampled_from(["a", "b\n", "c\r\n", "é\f", "", "\n", "same line\n"]), max_size=10).map(
    "".join
)


@given(LINES, LINES)
def test_hunks_turn_one_text_into_the_other(before: str, after: str) -> None:
    wanted = after.replace("\r\n", "\n")
    windows = before.count("\r\n") * 2 > before.count("\n")
    assert apply(before, hunks(before, after)) == (wanted.replace("\n", "\r\n") if windows else wanted)
