"""Clang's diagnostics of OpenCL C, from a helper process and without a device."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from clang.cindex import Type

from mb_targets.model import Kernel
from mb_targets.opencl import OpenCLTarget, comment, elements
from mb_targets.opencl.detect import find_kernels
from mb_targets.opencl.diagnose import parsed
from mb_targets.opencl.problems import problems
from mb_targets.protocol import SupportsDiagnose

ROOT = Path(__file__).parents[4]
BUILT_INS = """
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
kernel void k(global float *x, local float4 *t, read_only image2d_t im, constant int *c, const int n) {
  const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
  size_t i = get_global_id(0);
  float4 v = vload4(i, x) * native_exp(M_PI_F) + read_imagef(im, s, (int2)(1, 2));
  half h = convert_half(v.x);
  barrier(CLK_LOCAL_MEM_FENCE);
  t[0] = fmax(v, INFINITY) + as_float4((uint4)(c[0])).wzyx;
  x[i] = sub_group_reduce_add(x[i]) + work_group_reduce_max(n) + atomic_add((volatile global int *)x, 1) + h;
  printf("%d", n);
}
"""


def diagnosed(source: str, *options: str) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "mb_targets.opencl.diagnose", *options]
    done = subprocess.run(command, input=source.encode(), capture_output=True, check=True, timeout=60)
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "path",
    [*ROOT.glob("examples/*.cl"), *ROOT.glob("tests/data/relatives/*.cl")],
    ids=lambda p: p.stem,
)
def test_good_kernels_have_no_diagnostics(path):
    assert diagnosed(path.read_text()) == []


def test_types_constants_and_functions_of_the_language_are_known():
    assert diagnosed(BUILT_INS) == []


def test_an_error_is_placed_by_characters_of_the_source():
    source = "/* größe */ kernel void k(global float *x) { x[0] = unknown + 1; }\n"
    (found,) = diagnosed(source)
    assert found["severity"] == "error"
    assert source[found["start"] :].startswith("unknown")


def test_options_define_macros():
    source = "kernel void k(global float *x) { x[0] = TILE; }\n"
    assert diagnosed(source, "-DTILE=4", "-cl-fast-relaxed-math") == []
    assert len(diagnosed(source)) == 1


def test_empty_and_broken_text_are_answered():
    assert diagnosed("") == []
    assert diagnosed("kernel void k(global float *x) {")


def kernels_of(path: Path) -> list[Kernel]:
    return find_kernels(path.read_text(), "opencl")


def options_of(kernel: Kernel) -> tuple[str, ...]:
    stated = comment.read(kernel)
    return (stated.options if stated else None) or ()


def seen_by_clang(kernel: Kernel) -> list[tuple[str, str, bool, object]]:
    unit, _ = parsed(kernel.source, options_of(kernel))
    functions = {c.spelling: c for c in unit.cursor.get_children() if c.is_definition()}
    return [
        described(a.spelling, a.type.get_pointee() if a.type.get_pointee().spelling else a.type)
        for a in functions[kernel.name].get_arguments()
    ]


def described(name: str, kind: Type) -> tuple[str, str, bool, object]:
    words = kind.get_canonical().spelling.split()
    space = next((w[2:] for w in words if w.startswith("__")), "private").replace("private", "value")
    bare = " ".join(w for w in words if not w.startswith("__") and w not in ("const", "volatile"))
    const = kind.is_const_qualified() or space == "constant"
    return name, space, const, ELEMENTS.get(bare, bare)


ELEMENTS = {
    "float": ("f32", 1),
    "double": ("f64", 1),
    "int": ("i32", 1),
    "unsigned int": ("u32", 1),
    "unsigned long": ("u64", 1),
    "long": ("i64", 1),
    "unsigned char": ("u8", 1),
    "char": ("i8", 1),
    "unsigned short": ("u16", 1),
    "short": ("i16", 1),
    "half": ("f16", 1),
}


@pytest.mark.parametrize(
    "path",
    [*ROOT.glob("examples/*.cl"), *ROOT.glob("tests/data/*/*.cl")],
    ids=lambda p: p.stem,
)
def test_clang_and_the_scanner_see_the_same_parameters(path: Path) -> None:
    for kernel in kernels_of(path):
        scanned = [
            (p.name, p.space, p.const, elements.element(p.type_name, kernel.source, options_of(kernel)))
            for p in kernel.parameters
        ]
        assert seen_by_clang(kernel) == scanned, kernel.name


def test_why_a_kernel_does_not_build_is_told_by_line_and_column() -> None:
    text = "kernel void k(global float *x) {\n  int unused_ü = 1;\n  x[0] = unknown;\n}\n"
    (found,) = OpenCLTarget().diagnose(find_kernels(text, "opencl")[0], ())
    assert (found.line, found.column) == (3, 10)
    assert "unknown" in found.message


def test_a_macro_given_in_two_words_is_defined() -> None:
    text = "kernel void k(global float *x) {\n  x[0] = LAST;\n}\n"
    assert OpenCLTarget().diagnose(find_kernels(text, "opencl")[0], ("-D", "LAST=1")) == []


def test_a_parse_that_takes_too_long_finds_nothing() -> None:
    (kernel,) = find_kernels("kernel void k(global float *x) { x[0] = unknown; }\n", "opencl")
    assert problems(kernel, seconds=0.001) == []


def test_the_target_says_that_it_can_diagnose() -> None:
    assert isinstance(OpenCLTarget(), SupportsDiagnose)
