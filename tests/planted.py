"""Wrong variants of two kernels, each wrong in one way, and right ones that differ as much."""

from __future__ import annotations

NEIGHBOURS = """
__kernel void neighbours(__global const float *x, __global float *out, int n)
{
    int i = get_global_id(0);
    %s
}
"""

ROW_TOTAL = """
__kernel void row_total(__global float *out, __global const float *x, int cols)
{
    __local float s[64];
    int row = get_group_id(0), l = get_local_id(0);
    float a = 0.0f;
    for (int c = l; c < cols; c += 64)
        a += x[row * cols + c];
    %s
}
"""

LEFT = "float left = x[i > 0 ? i - 1 : 0];"
VALUE = "0.75f * x[i] + 0.25f * left"

# What is wrong: the body, and the checks of which one must refuse it.
WRONG_NEIGHBOURS = {
    "off by one": (
        f"if (i >= n) return; float left = x[i > 1 ? i - 2 : 0]; out[i] = {VALUE};",
        {"smoke"},
    ),
    "skipped tail": (
        f"if (i >= n / 4 * 4) return; {LEFT} out[i] = {VALUE};",
        {"sizes"},
    ),
    "out-of-bounds read": (
        f"if (i >= n) return; {LEFT} float right = x[i + 1]; "
        f"out[i] = {VALUE} + (right > 1e30f ? 1.0f : 0.0f);",
        {"guard pages"},
    ),
    "out-of-bounds write": (
        f"{LEFT} out[i] = i < n ? {VALUE} : 0.0f;",
        {"guard pages"},
    ),
    "stale output": (
        f"if (i >= n) return; {LEFT} float v = {VALUE}; out[i] = fmax(out[i], v);",
        {"smoke", "distributions"},
    ),
    "half precision inside": (
        "if (i >= n) return; "
        "float here = as_float(as_uint(x[i]) & 0xffffe000u); "
        "float left = as_float(as_uint(x[i > 0 ? i - 1 : 0]) & 0xffffe000u); "
        "out[i] = 0.75f * here + 0.25f * left;",
        {"smoke"},
    ),
    "hard-coded size": (
        f"if (i >= 8192) return; {LEFT} out[i] = {VALUE};",
        {"guard pages", "distributions", "sizes"},
    ),
    "input modified": (
        f"if (i >= n) return; {LEFT} out[i] = {VALUE}; if (i == n - 1) ((__global float *)x)[i] = 0.0f;",
        {"inputs unchanged"},
    ),
    "constant output": ("if (i < n) out[i] = 0.125f;", {"smoke"}),
    "infinite loop": (
        f"if (i >= n) return; {LEFT} out[i] = {VALUE}; volatile int spin = 1; while (spin) spin = 1;",
        {"time limit"},
    ),
}

STORE = "if (l == 0) out[row] = s[0];"
TREE = "for (int h = 32; h > 0; h >>= 1) { barrier(CLK_LOCAL_MEM_FENCE); if (l < h) s[l] += s[l + h]; }"

WRONG_ROW_TOTAL = {
    "missing barrier": (
        "s[l] = a; barrier(CLK_LOCAL_MEM_FENCE); "
        f"for (int h = 32; h > 0; h >>= 1) {{ if (l < h) s[l] += s[l + h]; }} {STORE}",
        {"smoke", "distributions", "oclgrind races"},
    ),
    "race": (
        "if (l == 0) out[row] = 0.0f; barrier(CLK_GLOBAL_MEM_FENCE); out[row] += a;",
        {"smoke", "distributions", "determinism", "oclgrind races"},
    ),
    "uninitialised local memory": (
        f"if (l < 63) s[l] = a; else s[l] += a; {TREE} barrier(CLK_LOCAL_MEM_FENCE); {STORE}",
        {"smoke", "distributions", "determinism", "oclgrind uninitialised"},
    ),
}

RIGHT_NEIGHBOURS = {
    "by two": (
        "for (int k = i; k < n; k += get_global_size(0)) "
        "{ float left = k ? x[k - 1] : x[0]; out[k] = mad(0.25f, left, 0.75f * x[k]); }"
    ),
}

RIGHT_ROW_TOTAL = {
    "tree": f"s[l] = a; {TREE} barrier(CLK_LOCAL_MEM_FENCE); {STORE}",
    "serial end": (
        "s[l] = a; barrier(CLK_LOCAL_MEM_FENCE); "
        "if (l == 0) { float t = 0.0f; for (int k = 0; k < 64; ++k) t += s[k]; out[row] = t; }"
    ),
}
