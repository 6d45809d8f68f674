"""A kernel without a stated launch gets one from its settings, its host code or its own indexing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mb_targets.concrete import concretize
from mb_targets.expression import evaluate
from mb_targets.model import Argument, LaunchSpec
from mb_targets.opencl.comment import describe_launch
from mb_targets.opencl.detect import find_kernels
from mb_targets.opencl.launch import infer_launch
from mb_targets.protocol import Question

ROOT = Path(__file__).parents[3]
STATED = sorted([*ROOT.glob("examples/*.cl"), *ROOT.glob("tests/data/relatives/*.cl")])


def inferred(source: str, path: Path | None = None, language: str = "opencl") -> LaunchSpec:
    found = infer_launch(find_kernels(source, language)[0], path)
    assert isinstance(found, LaunchSpec), found
    return found


def asked(source: str) -> Question:
    found = infer_launch(find_kernels(source, "opencl")[0], None)
    assert isinstance(found, Question)
    return found


def extents(launch: LaunchSpec) -> dict[str, str]:
    return {a.name: a.extent for a in launch.arguments if a.role != "scalar"}


def argument(launch: LaunchSpec, name: str) -> Argument:
    return next(a for a in launch.arguments if a.name == name)


@pytest.mark.parametrize("path", STATED, ids=lambda p: p.stem)
def test_what_a_person_wrote_above_an_example_is_what_would_be_guessed(path: Path) -> None:
    source = path.read_text()
    stated = inferred(source)
    guessed = inferred(re.sub(r"// mb:.*\n", "", source))
    sizes = {s.name: 7 + 2 * i for i, s in enumerate(stated.symbols)}
    assert [evaluate(g, sizes) for g in guessed.global_size] == [
        evaluate(g, sizes) for g in stated.global_size
    ]
    assert guessed.local_size == stated.local_size
    assert [(a.role, a.dtype, evaluate(a.extent, sizes)) for a in guessed.arguments] == [
        (a.role, a.dtype, evaluate(a.extent, sizes)) for a in stated.arguments
    ]


def test_guesses_are_marked_as_such() -> None:
    launch = inferred(
        "kernel void k(global float *x, int n) { if (get_global_id(0) < n) x[get_global_id(0)] = 1; }"
    )
    assert launch.origin == "inferred"
    assert {a.origin for a in launch.arguments} == {"inferred"}


def test_sizes_that_no_parameter_tells_get_a_name_of_their_own() -> None:
    launch = inferred("kernel void add(global float *x) { x[get_global_id(0)] += 1.0f; }")
    assert (launch.global_size, extents(launch)) == (("items",), {"x": "items"})


def test_a_row_length_bounds_the_columns_of_a_kernel_without_guards() -> None:
    launch = inferred(
        "kernel void t(global const float *a, global float *b, int w, int h)"
        "{ int x = get_global_id(0), y = get_global_id(1); b[x * h + y] = a[y * w + x]; }"
    )
    assert launch.global_size == ("w", "h")
    assert extents(launch) == {"a": "h*w", "b": "h*w"}


def test_local_memory_decides_the_work_group() -> None:
    launch = inferred(
        "#define T 16\nkernel void t(global const float *a, global float *b, int n) {"
        "local float tile[T][T + 1]; int x = get_global_id(0), y = get_global_id(1);"
        "tile[get_local_id(1)][get_local_id(0)] = a[y * n + x]; barrier(CLK_LOCAL_MEM_FENCE);"
        "b[y * n + x] = tile[get_local_id(1)][get_local_id(0)]; }"
    )
    assert launch.local_size == ("16", "16")


def test_a_required_work_group_is_taken() -> None:
    launch = inferred(
        "kernel __attribute__((reqd_work_group_size(128, 1, 1))) void k(global int *x, int n)"
        "{ int i = get_group_id(0) * get_local_size(0) + get_local_id(0); if (i < n) x[i] = i; }"
    )
    assert (launch.global_size, launch.local_size) == (("(n+127)//128*128",), ("128",))


def test_a_local_parameter_holds_what_the_group_touches() -> None:
    launch = inferred(
        "kernel void k(global const float *x, global float *y, local float *t) { int l = get_local_id(0);"
        "t[l] = x[get_global_id(0)]; barrier(1); if (l == 0) y[get_group_id(0)] = t[0]; }"
    )
    assert argument(launch, "t").role == "local"
    assert extents(launch) == {"x": "items", "y": "items//64", "t": "64"}


def test_a_tile_that_nothing_guards_asks_for_multiples_of_it() -> None:
    launch = inferred(
        "kernel void mm(global const float *A, global float *C, int n, int K) { float s = 0;"
        "int i = get_global_id(0); if (i >= n) return;"
        "for (int k = 0; k < K; k += 4) s += A[i * K + k] + A[i * K + k + 3]; C[i] = s; }"
    )
    assert next(s.multiple for s in launch.symbols if s.name == "K") == 4


def test_vectors_count_their_lanes() -> None:
    launch = inferred(
        "kernel void k(global float4 *v, global float *x, global const float3 *w) { int i = get_global_id(0);"
        "v[i] = vload4(i, x); vstore4(v[i], i, x + 4); v[i].xyz += w[i]; }"
    )
    assert extents(launch) == {"v": "4*items", "x": "4*items+4", "w": "4*items"}
    assert [a.lanes for a in launch.arguments] == [4, 1, 4]


def test_an_index_buffer_stays_inside_what_it_indexes() -> None:
    launch = inferred(
        "kernel void g(global const float *x, global const int *idx, global float *y, int n)"
        "{ int i = get_global_id(0); if (i < n) y[i] = x[idx[i]]; }"
    )
    index = argument(launch, "idx")
    assert (index.low, index.high, extents(launch)["x"]) == ("0", "n-1", "n")


def test_pointers_into_parameters_are_followed() -> None:
    launch = inferred(
        "kernel void k(global const float *x, global float *y, int rows, int cols) {"
        "int r = get_global_id(0); if (r >= rows) return; global const float *row = x + r * cols;"
        "global float *out = &y[r]; for (int c = 0; c < cols; ++c) *out += row[c]; }"
    )
    assert extents(launch) == {"x": "cols*rows", "y": "rows"}


def test_a_guard_on_a_sum_bounds_what_it_indexes() -> None:
    launch = inferred(
        "kernel void s(global const float *x, global float *y, int w, int h) { int i = get_global_id(0);"
        "int j = get_global_id(1); if (i >= w || j >= h) return; float a = 0;"
        "for (int d = -1; d <= 1; ++d) if (i + d >= 0 && i + d < w) a += x[j * w + i + d];"
        "y[j * w + i] = a; }"
    )
    assert extents(launch) == {"x": "h*w", "y": "h*w"}


def test_an_extent_that_cannot_be_told_is_left_to_a_probe() -> None:
    launch = inferred(
        "int f(int a);\nkernel void k(global float *x, global float *y)"
        "{ int i = get_global_id(0); while (i < 100) { x[i] = 1; i = f(i); } y[get_global_id(0)] = 2; }"
    )
    assert extents(launch) == {"x": "?", "y": "items"}


@pytest.mark.parametrize(
    ("body", "role"),
    [("x[i] = 1;", "out"), ("x[i] += 1;", "inout"), ("y[i] = x[i];", "in"), ("atomic_inc(&x[i]);", "inout")],
)
def test_the_role_of_a_buffer_is_what_is_done_with_it(body: str, role: str) -> None:
    source = f"kernel void k(global int *x, global int *y) {{ int i = get_global_id(0); {body} }}"
    assert argument(inferred(source), "x").role == role


def test_a_macro_that_only_the_host_defines_is_a_question_with_an_answer_to_fill_in() -> None:
    question = asked("kernel void k(global DATA *x) { x[get_global_id(0)] = x[0] * TILE; }")
    assert "DATA, TILE" in question.text
    assert question.comment == '// mb: opts="-DDATA=? -DTILE=?"'


def test_macros_given_as_options_are_no_question() -> None:
    line = '// mb: opts="-DDATA=float -DTILE=4"\n'
    launch = inferred(line + "kernel void k(global float *x) { x[get_global_id(0) * TILE] = 1; }")
    assert extents(launch) == {"x": "4*items-3"}


@pytest.mark.parametrize(
    "body",
    [
        "float A = 1; x[0] = A;",
        "x[0] = M_PI_F * FLT_MAX + INFINITY;",
        "\n#ifdef FAST\n x[0] = FACTOR;\n#endif\n",
        "barrier(CLK_LOCAL_MEM_FENCE);",
    ],
)
def test_names_in_capitals_that_are_known_are_no_question(body: str) -> None:
    inferred(f"kernel void k(global float *x) {{ {body} }}")


def test_images_are_a_question() -> None:
    assert "images" in asked("kernel void k(read_only image2d_t im, global float *x) { x[0] = 1; }").text


@pytest.mark.parametrize("path", STATED, ids=lambda p: p.stem)
def test_a_guessed_launch_can_be_worked_out_and_written_above_the_kernel(path: Path) -> None:
    source = re.sub(r"// mb:.*\n", "", path.read_text())
    kernel = find_kernels(source, "opencl")[0]
    guessed = inferred(source)
    concretize(kernel, guessed, None, None)
    lines = describe_launch(kernel, guessed)
    written = source[: kernel.start] + lines + "\n" + source[kernel.start :]
    again = inferred(written)
    assert (again.global_size, extents(again)) == (guessed.global_size, extents(guessed))
    assert again.origin == "comment"


BARE = "kernel void scale(global float *x, int n) { int i = get_global_id(0); if (i < n) x[i] *= 2; }\n"


def test_settings_of_the_workspace_state_a_launch(tmp_path: Path) -> None:
    lines = [
        'global = ["n", 1]',
        'n = "4096:1..8192"',
        '"n%4" = true',
        'x = "inout f32[n]"',
        'opts = ["-DA=1"]',
    ]
    (tmp_path / "modelblaster.toml").write_text("\n".join(["[opencl.scale]", *lines]))
    launch = inferred(BARE, tmp_path / "a.cl")
    assert (launch.global_size, launch.options, launch.origin) == (("n", "1"), ("-DA=1",), "settings")
    assert (launch.symbols[0].value, launch.symbols[0].multiple) == (4096, 4)


def test_a_comment_goes_before_the_settings(tmp_path: Path) -> None:
    (tmp_path / "modelblaster.toml").write_text('[opencl.scale]\nglobal = "(n,)"\nn = 4096\n')
    launch = inferred("// mb: n=128\n" + BARE, tmp_path / "a.cl")
    assert [(s.value, s.origin) for s in launch.symbols] == [(128, "comment")]


@pytest.mark.parametrize("text", ["[opencl.scale\n", '[opencl.scale]\nglobal = "(n"\n', "\xff"])
def test_settings_that_cannot_be_read_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "modelblaster.toml").write_bytes(text.encode("latin-1"))
    found = infer_launch(find_kernels(BARE, "opencl")[0], tmp_path / "a.cl")
    assert isinstance(found, Question)
    assert "modelblaster.toml" in found.text


def test_a_launch_in_c_is_read(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "main.c").write_text(
        "#define COUNT 5000 /* a.cl */\nint main() { cl_int n = COUNT;\n"
        'cl_kernel k = clCreateKernel(p, "scale", 0);\n'
        "size_t g[] = {(COUNT + 63) / 64 * 64}, l[] = {64}; clSetKernelArg(k, 1, sizeof n, &n);\n"
        "clEnqueueNDRangeKernel(q, k, 1, NULL, g, l, 0, NULL, NULL); }\n"
    )
    launch = inferred(BARE, tmp_path / "a.cl")
    assert (launch.global_size, launch.local_size, launch.origin) == (("(n+63)/64*64",), ("64",), "host code")
    assert [(s.name, s.value) for s in launch.symbols] == [("n", 5000)]


def test_a_launch_in_python_is_read(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "run.py").write_text(
        "size = 1 << 14  # a.cl\nprogram = cl.Program(c, s).build(options=['-DA=1'])\n"
        "program.scale(queue, (size,), None, x, np.int32(size))\n"
    )
    launch = inferred(BARE, tmp_path / "a.cl")
    assert (launch.global_size, launch.options, launch.origin) == (("n",), ("-DA=1",), "host code")
    assert launch.symbols[0].value == 1 << 14


def test_host_code_whose_sizes_are_computed_elsewhere_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "run.py").write_text("program.scale(queue, (size(),), None, x, n)  # a.cl\n")
    assert inferred(BARE, tmp_path / "a.cl").origin == "inferred"


def test_memory_taken_for_another_type_is_counted_in_bytes() -> None:
    launch = inferred(
        "kernel void k(global const uchar *raw, global void *out, int n) { int i = get_global_id(0);"
        "if (i < n) ((global float *)out)[i] = ((global const uint *)raw)[i] + *(global short *)(raw + 6); }"
    )
    assert extents(launch) == {"raw": "max(4*n, 8)", "out": "n"}
    assert argument(launch, "out").dtype == "f32"


def test_a_pointer_keeps_its_declared_type_over_an_assignment() -> None:
    launch = inferred(
        "kernel void k(global float *x, int n, ulong offset0) {"
        "x = (global void *)((global char *)x + offset0); int i = get_global_id(0); if (i < n) x[i] = 1; }"
    )
    assert extents(launch) == {"x": "(4*n+offset0+3)//4"}
    assert next(s.value for s in launch.symbols if s.name == "offset0") == 0


def test_a_pointer_that_moves_in_a_loop_leaves_its_length_to_a_probe() -> None:
    launch = inferred(
        "kernel void k(global const float *x, global float *y, int n) { int i = get_global_id(0);"
        "global const float *p = x + i; float s = 0; while (n > 0) { s += *p++; n--; } y[i] = s; }"
    )
    assert extents(launch) == {"x": "?", "y": "items"}


@pytest.mark.parametrize(
    ("condition", "extent"),
    [("KIND == 1", "n"), ("KIND > 1 && defined(WIDE)", "2*n"), ("!defined(KIND)", "3*n")],
)
def test_only_the_branch_that_is_compiled_counts(condition: str, extent: str) -> None:
    body = (
        f"#if {condition}\n x[i] = 1;\n#elif KIND == 2\n x[i + n] = 1;\n#else\n x[i + 2 * n] = 1;\n#endif\n"
    )
    kind = {"n": 1, "2*n": 2, "3*n": 3}[extent]
    launch = inferred(
        f"#define KIND {kind}\nkernel void k(global float *x, int n)"
        f"{{ int i = get_global_id(0); if (i >= n) return;\n{body} }}"
    )
    assert extents(launch) == {"x": extent}


def test_constant_rows_bound_their_columns() -> None:
    launch = inferred("kernel void k(global float *x) { x[get_global_id(1) * 512 + get_global_id(0)] = 1; }")
    assert launch.global_size == ("512", "items_y")
    assert extents(launch) == {"x": "512*items_y"}
