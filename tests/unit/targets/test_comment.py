"""The ``// mb:`` lines say how to launch a kernel, and a launch can be written back as such lines."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mb_targets.model import Argument, Kernel, LaunchSpec, Symbol
from mb_targets.opencl.comment import describe_launch, items
from mb_targets.opencl.detect import find_kernels
from mb_targets.opencl.launch import infer_launch
from mb_targets.protocol import Question

KERNEL = """__kernel void mm(__global const float *A, __global float4 *C, __global int *idx, __local half *t,
                 int n, float alpha) { C[get_global_id(0)] = A[n] * alpha; }
"""
LINES = """// mb: global=(N, (M+15)//16*16) local=(16,16) N=1024:1..4096 M=768 N%16
// mb: A=f32[M*N]{-1..1} C=out:sum f32[4*N] idx=in i32[N]{0..N-1} t=f16[256] n=N alpha=1.5 tol=1e-4
// mb: opts="-DTILE=16 -cl-mad-enable"
"""


def kernel(lines: str = "", body: str = KERNEL) -> Kernel:
    return find_kernels(lines + body, "opencl")[0]


def launch(lines: str, body: str = KERNEL) -> LaunchSpec:
    found = infer_launch(kernel(lines, body), None)
    assert isinstance(found, LaunchSpec), found
    return found


def question(lines: str) -> Question:
    found = infer_launch(kernel(lines), None)
    assert isinstance(found, Question)
    return found


def test_all_that_the_lines_say_is_in_the_launch() -> None:
    assert launch(LINES) == LaunchSpec(
        symbols=(
            Symbol("N", 1024, 1, 4096, 16, "comment"),
            Symbol("M", 768, origin="comment"),
            Symbol("alpha", 1.5, 1.5, 1.5, origin="comment"),
        ),
        arguments=(
            Argument("A", "in", "f32", "M*N", low="-1", high="1", origin="comment"),
            Argument("C", "out", "f32", "4*N", lanes=4, fold="sum", origin="comment"),
            Argument("idx", "in", "i32", "N", low="0", high="N-1", origin="comment"),
            Argument("t", "local", "f16", "256", origin="comment"),
            Argument("n", "scalar", "i32", "N", origin="comment"),
            Argument("alpha", "scalar", "f32", "alpha", origin="comment"),
        ),
        global_size=("N", "(M+15)//16*16"),
        local_size=("16", "16"),
        options=("-DTILE=16", "-cl-mad-enable"),
        tolerance=1e-4,
        origin="comment",
    )


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_other_comments_between_the_lines_and_the_kernel_do_not_hide_them(end: str) -> None:
    lines = LINES.replace("\n", end) + f"// größer{end}/* of two{end} * lines */{end}"
    assert launch(lines).global_size == ("N", "(M+15)//16*16")


def test_lines_above_another_kernel_are_not_this_ones() -> None:
    found = find_kernels(LINES + KERNEL + "\n" + KERNEL.replace("mm", "other"), "opencl")[1]
    assert items(found) == []


def test_lines_of_the_file_hold_for_each_kernel_and_its_own_go_first() -> None:
    whole = "// mb: file global=(N,) N=64 A=f32[N] C=f32[N] idx=i32[N] t=f16[1] n=N alpha=2 tol=1e-3\n"
    found = launch(whole + "int x;\n// mb: N=128\n")
    assert (found.global_size, found.symbols[0].value, found.tolerance) == (("N",), 128, 1e-3)


def test_a_range_alone_adds_to_the_value_of_another_line() -> None:
    found = launch(LINES.replace("N=1024:1..4096", "N=16..4096") + "// mb: N=1024\n")
    assert (found.symbols[0].value, found.symbols[0].low, found.symbols[0].high) == (1024, 16, 4096)


def test_a_name_that_stands_for_others_is_put_in_where_it_is_used() -> None:
    found = launch(LINES.replace("C=out:sum f32[4*N]", "P=N/16 C=f32[P]"))
    assert found.arguments[1].extent == "N/16"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("global=(N,", "line 1: `global`"),
        ("N=", "line 1: `N`"),
        ("N=5..1", "empty range"),
        ("N%x", "multiple is a whole number"),
        ("hello", "line 1: did not expect `hello`"),
        ("A=f99[N]", "unknown type 'f99'"),
        ("B=f32[N]", "`B` is no parameter of mm; its parameters are A, C, idx"),
        ("A=f32[N]{1}", "lowest..highest"),
        ("tol=much", "takes a number"),
        ('opts="-DA', "write it in quotes"),
        ("global=(1,2,3,4)", "one to three sizes"),
    ],
)
def test_a_line_that_cannot_be_read_says_where_and_what_was_expected(line: str, says: str) -> None:
    assert says in question(f"// mb: {line}\n").text


def test_an_unknown_size_is_asked_for_by_name() -> None:
    asked = question(LINES.replace("M=768 ", ""))
    assert "M" in asked.text
    assert asked.comment == "// mb: M=?"


def test_unlike_numbers_of_global_and_local_sizes_are_asked_about() -> None:
    assert "2 global and 1 local" in question(LINES.replace("local=(16,16)", "local=(16,)")).text


NAMES = st.sampled_from("NMK")
EXTENTS = st.sampled_from(["N", "N*M", "(M+15)//16*16", "4*K", "max(N, K)", "256"])
RANGES = st.sampled_from([("", ""), ("0", "1"), ("-1.5", "N-1")])
VALUES = st.one_of(st.integers(1, 1 << 24), st.floats(0.001, 1e6).filter(lambda v: v != v // 1))
TAILS = st.sampled_from([(1, 1 << 31, 1), (2, 4096, 1), (16, 1 << 20, 16)])


@st.composite
def launches(draw: st.DrawFn) -> LaunchSpec:
    symbols = [Symbol(n, draw(st.integers(1, 1 << 24)), *draw(TAILS), "comment") for n in "NMK"]
    alpha = draw(VALUES)
    symbols.append(
        Symbol("alpha", alpha, *((1, 1 << 31) if alpha == alpha // 1 else (alpha, alpha)), 1, "comment")
    )
    roles = st.sampled_from(["in", "out", "inout"])
    dims = draw(st.integers(1, 3))

    def buffer(name: str, dtype: str, lanes: int, folds: bool) -> Argument:
        low, high = draw(RANGES)
        made = Argument(name, draw(roles), "f32", draw(EXTENTS), lanes, None, low, high, "comment")
        made = replace(made, dtype=dtype)
        return replace(made, role="out", fold=draw(st.sampled_from(["sum", "max", "min"]))) if folds else made

    arguments = (
        buffer("A", "f32", 1, folds=False),
        buffer("C", "f32", 4, folds=draw(st.booleans())),
        buffer("idx", "i32", 1, folds=False),
        Argument("t", "local", "f16", draw(EXTENTS), origin="comment"),
        Argument("n", "scalar", "i32", draw(EXTENTS.filter(lambda e: e != "256")), origin="comment"),
        Argument("alpha", "scalar", "f32", "alpha", origin="comment"),
    )
    return LaunchSpec(
        symbols=tuple(symbols),
        arguments=arguments,
        global_size=tuple(draw(EXTENTS) for _ in range(dims)),
        local_size=draw(st.sampled_from([None, ("16", "8", "1")[:dims]])),
        options=draw(st.sampled_from([(), ("-DA=1",), ("-DT=a b", '-DQ="x"', "-w"), ("-I/größe",)])),
        tolerance=draw(st.sampled_from([None, 1e-4, 0.5])),
        origin="comment",
    )


@given(launches())
def test_a_launch_written_as_lines_reads_back_the_same(spec: LaunchSpec) -> None:
    lines = describe_launch(kernel(), spec)
    assert launch(lines + "\n") == spec


def test_lines_are_kept_short() -> None:
    assert all(len(line) <= 100 for line in describe_launch(kernel(), launch(LINES)).splitlines())
