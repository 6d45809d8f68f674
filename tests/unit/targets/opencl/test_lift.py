"""Forms have the one shape that schedules rely on, and compute what numpy does."""

from __future__ import annotations

import numpy as np
import pytest
from lifted import ROOT, form_of, kernels

from mb_targets.form.affine import equal
from mb_targets.form.evaluate import evaluate
from mb_targets.form.nest import Accumulate, Assign, Const, Form, Let, Loop, Op, Store, Var
from mb_targets.form.traverse import statements
from mb_targets.opencl.lift import lift

N = Var("n", "i32")


def named(path: str, name: str) -> Form:
    for kernel, launch in kernels(ROOT / path):
        if kernel.name == name:
            form = lift(kernel, launch)
            assert isinstance(form, Form), form
            return form
    raise AssertionError(name)


def row_kernel(update: str, start: str = "0.0f") -> str:
    return f"""
        // mb: global=(r,) r=20 n=30 a=f32[r*n] o=out f32[r]
        __kernel void k(__global const float *a, __global float *o, int n)
        {{
            int i = get_global_id(0);
            float s = {start};
            for (int j = 0; j < n; j++) {{ {update} }}
            o[i] = s;
        }}"""


ROWS = np.random.default_rng(5).standard_normal((20, 30)).astype(np.float32)


@pytest.mark.parametrize(
    ("update", "op"),
    [
        ("s += a[i * n + j];", "+"),
        ("s = s + a[i * n + j];", "+"),
        ("s = a[i * n + j] + s;", "+"),
        ("s -= a[i * n + j];", "+"),
        ("s = mad(a[i * n + j], 2.0f, s);", "+"),
        ("s *= a[i * n + j];", "*"),
        ("s = fmax(s, a[i * n + j]);", "max"),
        ("s = max(a[i * n + j], s);", "max"),
        ("if (a[i * n + j] > s) s = a[i * n + j];", "max"),
        ("s = a[i * n + j] > s ? a[i * n + j] : s;", "max"),
        ("s = s >= a[i * n + j] ? s : a[i * n + j];", "max"),
        ("s = s < a[i * n + j] ? s : a[i * n + j];", "min"),
        ("float v = a[i * n + j]; if (v < s) { s = v; }", "min"),
    ],
)
def test_every_way_to_write_a_fold_is_an_accumulation(update: str, op: str) -> None:
    form = form_of(row_kernel(update))
    found = [s for s in statements(form.body) if isinstance(s, Accumulate)]
    assert [(s.name, s.op) for s in found] == [("s", op)]
    assert not any(isinstance(s, Assign) for s in statements(form.body))


@pytest.mark.parametrize(
    "update", ["s = a[i * n + j] - s;", "s = s * 0.5f + a[i * n + j];", "s = s / a[i * n + j];"]
)
def test_a_recurrence_is_no_accumulation(update: str) -> None:
    form = form_of(row_kernel(update))
    assert not any(isinstance(s, Accumulate) for s in statements(form.body))


@pytest.mark.parametrize(
    "guard",
    [
        "if (i >= n) return; o[i] = a[i];",
        "if (!(i < n)) return; o[i] = a[i];",
        "if (i < n) { o[i] = a[i]; }",
        "if (n > i) o[i] = a[i];",
        "if (i <= n - 1) o[i] = a[i];",
        "float v; if (i < n) { v = a[i]; o[i] = v; }",
        "if (i >= n) { return; } else { o[i] = a[i]; }",
    ],
)
def test_a_guard_around_the_whole_body_is_the_axis_extent(guard: str) -> None:
    form = form_of(
        f"""// mb: global=((n+63)//64*64,) n=1000 a=f32[n] o=out f32[n]
        __kernel void k(__global const float *a, __global float *o, int n)
        {{ int i = get_global_id(0); {guard} }}"""
    )
    (axis,) = form.axes
    assert axis.guarded
    assert axis.extent is not None
    assert equal(axis.extent, N)
    assert isinstance(form.body[-1], Store)


def test_an_unguarded_extent_comes_from_the_scalar_that_the_launch_gives_the_size() -> None:
    form = form_of(
        """// mb: global=(W,H) W=100 H=50 o=out f32[W*H] rows=H columns=W
        __kernel void k(__global float *o, int rows, int columns)
        { int x = get_global_id(0), y = get_global_id(1); o[y * columns + x] = x - y; }"""
    )
    assert [(a.name, a.extent, a.guarded) for a in form.axes] == [
        ("x", Var("columns", "i32"), False),
        ("y", Var("rows", "i32"), False),
    ]


def test_an_extent_may_be_an_expression_over_scalars() -> None:
    form = form_of(
        """// mb: global=(w*h,) w=100 h=50 o=out f32[w*h]
        __kernel void k(__global float *o, int w, int h) { o[get_global_id(0)] = w + h; }"""
    )
    assert form.axes[0].extent == Op("*", (Var("w", "i32"), Var("h", "i32")), "i32")


def test_a_size_that_is_a_number_is_a_constant_extent_and_one_not_passed_is_none() -> None:
    source = """// mb: global=(64,r) r=20 o=out f32[64*r]
        __kernel void k(__global float *o)
        { int c = get_global_id(0); int r = get_global_id(1); o[r * 64 + c] = c; }"""
    first, second = form_of(source).axes
    assert first.extent == Const(64, "i32")
    assert second.extent is None


def test_shadowing_names_are_renamed() -> None:
    form = form_of(
        """// mb: global=(n,) n=10 a=f32[n] o=out f32[n]
        __kernel void k(__global const float *a, __global float *o, int n)
        {
            int i = get_global_id(0);
            float v = a[i];
            for (int j = 0; j < n; j++) { float v = a[j]; o[i] = v; }
            o[i] += v;
        }"""
    )
    names = [s.name for s in statements(form.body) if isinstance(s, Let)]
    assert len(set(names)) == len(names) == 2
    a = np.arange(10, dtype=np.float32)
    got = evaluate(form, {"n": 10}, {"a": a, "o": a * 0}, (10,))["o"]
    np.testing.assert_array_equal(got, a[-1] + a)


def test_loops_are_normalised_to_count_up_to_a_bound() -> None:
    form = form_of(
        """// mb: global=(n,) n=10 o=out f32[n]
        __kernel void k(__global float *o, int n)
        {
            int i = get_global_id(0);
            float s = 0;
            for (int j = -1; j <= 1; ++j) s += j * 2;
            for (int j = n; j > 0; j--) s += j;
            for (int j = 0; j != n; j = j + 1) s += 1;
            o[i] = s;
        }"""
    )
    loops = [s for s in form.body if isinstance(s, Loop)]
    assert [(s.start, s.stop, s.step) for s in loops] == [
        (Const(-1, "i32"), Const(2, "i32"), Const(1, "i32")),
        (Const(0, "i32"), N, Const(1, "i32")),
        (Const(0, "i32"), N, Const(1, "i32")),
    ]


def test_buffers_know_whether_they_are_read_and_written() -> None:
    form = named("tests/data/lift/rows.cl", "softmax_pointers")
    assert [(b.name, b.read, b.written) for b in form.buffers] == [("a", True, False), ("o", True, True)]


def test_a_macro_that_is_a_number_keeps_its_name() -> None:
    form = named("tests/data/lift/maps.cl", "with_macros")
    texts = {e.text for s in form.body for e in _constants(s)}
    assert {"COLS", "SCALE"} <= texts


def _constants(s: object) -> list[Const]:
    from mb_targets.form.traverse import expressions, walk

    return [e for top in expressions(s) for e in walk(top) if isinstance(e, Const)]  # type: ignore[arg-type]


def test_an_unsuffixed_literal_makes_a_double_computation_unless_the_options_say_otherwise() -> None:
    source = """// mb: global=(n,) n=10 {options} a=f32[n] o=out f32[n]
        __kernel void k(__global const float *a, __global float *o)
        {{ int i = get_global_id(0); o[i] = a[i] * 0.5; }}"""
    assert "f64" in repr(form_of(source.format(options="")))
    assert "f64" not in repr(form_of(source.format(options='opts="-cl-single-precision-constant"')))


def test_a_tree_is_one_fold_of_a_chunk_clamped_to_the_size() -> None:
    form = named("tests/data/lift/trees.cl", "modulo_tree")
    assert form.local_size == (64, 1, 1)
    (axis,) = form.axes
    assert axis.level == "group"
    assert axis.dim == 0
    let, loop, store = form.body
    assert isinstance(let, Let)
    assert isinstance(loop, Loop)
    assert isinstance(store, Store)
    assert loop.body == (Accumulate("sum", "+", loop.body[0].value),)  # type: ignore[union-attr]
    assert "min" in repr(loop.stop)


def test_two_trees_a_row_lift_to_the_row_form() -> None:
    form = named("tests/data/lift/trees.cl", "softmax_groups")
    assert [type(s).__name__ for s in form.body] == ["Let", "Loop", "Let", "Loop", "Assign", "Loop"]
    assert all(s.start == Const(0, "i32") for s in form.body if isinstance(s, Loop))


@pytest.mark.parametrize("cols", [1, 63, 64, 65, 200])
def test_a_group_softmax_computes_what_numpy_does(cols: int) -> None:
    form = named("tests/data/lift/trees.cl", "softmax_groups")
    x = np.random.default_rng(1).standard_normal((3, cols)).astype(np.float32)
    got = evaluate(form, {"cols": cols}, {"a": x, "o": x * 0}, (192,), (64,))["o"]
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(got.reshape(3, cols), e / e.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("size", [1, 2, 5, 31])
def test_a_matmul_computes_what_numpy_does(size: int) -> None:
    form = named("examples/matmul.cl", "matmul")
    a, b = np.random.default_rng(1).standard_normal((2, size, size)).astype(np.float32)
    got = evaluate(form, {"n": size}, {"A": a, "B": b, "C": a * 0}, (32, 32))["C"]
    np.testing.assert_allclose(got.reshape(size, size), a.astype(np.float64) @ b)


@pytest.mark.parametrize(("h", "w"), [(1, 1), (2, 7), (9, 5)])
def test_a_stencil_computes_what_numpy_does(h: int, w: int) -> None:
    form = named("tests/data/relatives/stencil5x5.cl", "blur5")
    image = np.random.default_rng(1).standard_normal((h, w)).astype(np.float32)
    f = np.random.default_rng(2).standard_normal((5, 5)).astype(np.float32)
    padded = np.pad(image, 2).astype(np.float64)
    expected = sum(padded[j : j + h, i : i + w] * f[j, i] for j in range(5) for i in range(5))
    buffers = {"image": image, "weights": f, "result": image * 0}
    got = evaluate(form, {"w": w, "h": h}, buffers, (16, 16))["result"]
    np.testing.assert_allclose(got.reshape(h, w), expected, atol=1e-12)


def test_a_transpose_computes_what_numpy_does() -> None:
    form = named("tests/data/relatives/transpose_int.cl", "transpose_int")
    x = np.arange(35, dtype=np.int32).reshape(5, 7)
    got = evaluate(form, {"rows": 5, "cols": 7}, {"in": x, "out": x * 0}, (5, 7))["out"]
    np.testing.assert_array_equal(got.reshape(7, 5), x.T)


def test_a_running_sum_computes_what_numpy_does() -> None:
    form = named("tests/data/lift/rows.cl", "running_sum")
    got = evaluate(form, {"rows": 20, "cols": 30}, {"a": ROWS, "o": ROWS * 0}, (20,))["o"]
    np.testing.assert_allclose(got.reshape(20, 30), np.cumsum(ROWS.astype(np.float64), axis=1))


def test_a_tiled_matmul_lifts_to_the_plain_one() -> None:
    tiled = named("tests/data/lift/tiles.cl", "tiled_matmul")
    assert tiled.local_size is None
    assert [a.level for a in tiled.axes] == ["item", "item"]
    _, loop, _ = tiled.body
    assert isinstance(loop, Loop)
    assert [type(s) for s in loop.body] == [Accumulate]
    assert loop.stop == N


def test_a_staged_transposition_lifts_to_one_move() -> None:
    form = named("tests/data/lift/tiles.cl", "tiled_transpose")
    assert [type(s) for s in form.body] == [Store]


def test_tiles_that_are_padded_at_the_edges_leave_no_trace() -> None:
    form = named("tests/data/lift/tiles.cl", "tiled_with_edges")
    assert [(a.name, a.extent, a.guarded) for a in form.axes] == [
        ("col", Var("N", "i32"), True),
        ("row", Var("M", "i32"), True),
    ]
    _, loop, _ = form.body
    assert isinstance(loop, Loop)
    assert loop.stop == Var("K", "i32")
    assert [type(s) for s in loop.body] == [Accumulate]
