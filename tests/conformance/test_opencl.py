"""The OpenCL target is a target, on both CPU runtimes."""

from __future__ import annotations

from typing import ClassVar

import pytest
from conformance.target_suite import Documents, TargetSuite

from mb_targets.model import Device

SCALE = """// mb: global=(n,) n=4096 by=1.5 src=f32[n] dst=out f32[n]
__kernel void scale(__global const float *src, __global float *dst, const int n, const float by)
{
    int i = get_global_id(0);
    if (i < n)
        dst[i] = src[i] * by;
}
"""
ROWS = """// mb: global=(rows,) rows=64 cols=96 src=f32[rows*cols] dst=out f32[rows]
__kernel void row_sum(__global const float *src, __global float *dst, const int rows, const int cols)
{
    int row = get_global_id(0);
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int i = 0; i < cols; i++)
        sum += src[row * cols + i];
    dst[row] = sum;
}
"""
WHOLE = f"{SCALE}\n{ROWS}"
RESPACED = WHOLE.replace("    ", "\t").replace("{\n", "{ // begins here\n\n").replace(" * ", "/* times */*")
RECODED = WHOLE.replace(" * by", " + by").replace("sum +=", "sum -=")
RENAMED = WHOLE.replace("int i ", "int at ").replace("[i]", "[at]").replace("(i < n", "(at < n")
FAULTY = SCALE.replace("if (i < n)", "if (i < m)")


class TestOpenCL(TargetSuite):
    name = "opencl"
    documents: ClassVar[Documents] = Documents(
        language="opencl",
        suffix=".cl",
        whole=WHOLE,
        respaced=RESPACED,
        recoded=RECODED,
        renamed=RENAMED,
        broken=WHOLE[: WHOLE.rindex("}")],
        faulty=FAULTY,
        faulty_line=5,
        size="n",
    )
    proposing_for: ClassVar[Device] = Device(
        key="cpu-any-pocl3.1",
        name="any",
        kind="cpu",
        vendor="any",
        driver="1",
        toolchain="OpenCL 3.0 PoCL 3.1",
        compute_units=2,
        vector_bits=512,
        local_bytes=1 << 15,
        max_work_group=4096,
    )

    @pytest.fixture(
        scope="class", params=[pytest.param(r, marks=pytest.mark.needs(r)) for r in ("pocl", "intel")]
    )
    @classmethod
    def choice(cls, request: pytest.FixtureRequest) -> str:
        chosen: str = request.param
        return chosen
