"""Clang's diagnostics of OpenCL C, from a helper process and without a device."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

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
