"""Small OpenCL kernels, right and wrong, all ``k(a, o, n)`` over float, and launches for them."""

from __future__ import annotations

from mb_targets.model import Kernel, Variant
from mb_targets.protocol import Launch

_HEAD = "__kernel void k(__global const float *a, __global float *o, int n) {\n"

_BODIES = {
    "good": "  int i = get_global_id(0);\n  if (i < n) o[i] = a[i] * 2;\n",
    "oob_read": "  int i = get_global_id(0);\n  o[i] = a[i + 1];\n",
    "oob_write": "  int i = get_global_id(0);\n  o[i + 1] = a[i];\n",
    "under_write": "  int i = get_global_id(0);\n  o[i - 1] = a[i];\n",
    "oob_local": (
        "  __local float t[16];\n  int l = get_local_id(0);\n  t[l + 1] = a[l];\n"
        "  barrier(CLK_LOCAL_MEM_FENCE);\n  o[get_global_id(0)] = t[l];\n"
    ),
    "oob_private": (
        "  float t[4];\n  for (int j = 0; j <= 4; j++) t[j] = a[j];\n"
        "  o[get_global_id(0)] = t[get_global_id(0) & 3];\n"
    ),
    "race_global": "  int i = get_global_id(0);\n  o[0] += a[i];\n",
    "race_local": (
        "  __local float t[16];\n  int l = get_local_id(0);\n  t[l] = a[get_global_id(0)];\n"
        "  o[get_global_id(0)] = t[15 - l];\n"
    ),
    "race_missing_barrier": (
        "  __local float t[16];\n  int l = get_local_id(0);\n  float s = 0;\n"
        "  for (int j = 0; j < 4; j++) {\n"
        "    t[l] = a[l + j * 16];\n    barrier(CLK_LOCAL_MEM_FENCE);\n"
        "    for (int m = 0; m < 16; m++) s += t[m];\n  }\n  o[get_global_id(0)] = s;\n"
    ),
    "race_between_groups": (
        "  int i = get_global_id(0);\n  o[i] = a[i];\n  barrier(CLK_GLOBAL_MEM_FENCE);\n"
        "  if (i > 0) o[i] += o[(i + 16) % n];\n"
    ),
    "uninitialised_local": (
        "  __local float t[16];\n  int l = get_local_id(0);\n  if (l < 8) t[l] = a[l];\n"
        "  barrier(CLK_LOCAL_MEM_FENCE);\n  o[get_global_id(0)] = t[l];\n"
    ),
    "uninitialised_private": (
        "  float s;\n  for (int j = 0; j < 4; j++) s += a[j];\n  o[get_global_id(0)] = s;\n"
    ),
    "divergent_barrier": (
        "  int l = get_local_id(0);\n  if (l < 8) barrier(CLK_LOCAL_MEM_FENCE);\n"
        "  o[get_global_id(0)] = a[l];\n"
    ),
    "barrier_after_return": (
        "  int i = get_global_id(0);\n  if (i >= n - 4) return;\n"
        "  barrier(CLK_LOCAL_MEM_FENCE);\n  o[i] = a[i];\n"
    ),
    "misaligned": "  int i = get_global_id(0);\n  o[i] = ((__global const float4 *)(a + 1))[0].x;\n",
    "writes_input": "  int i = get_global_id(0);\n  ((__global float *)a)[i] = 0;\n  o[i] = 1;\n",
    "endless": "  volatile int go = n;\n  while (go) { }\n  o[get_global_id(0)] = 1;\n",
    "tiled": (
        "  __local float t[16];\n  int l = get_local_id(0);\n  t[l] = a[get_global_id(0)];\n"
        "  barrier(CLK_LOCAL_MEM_FENCE);\n  o[get_global_id(0)] = t[15 - l];\n"
    ),
    "talkative": '  printf("%d and more text to fill the pipe\\n", (int)get_global_id(0));\n  o[0] = 1;\n',
}

SOURCES = {name: f"{_HEAD}{body}}}\n" for name, body in _BODIES.items()}


def variant(name: str) -> Variant:
    """Give one of the kernels."""
    return Variant(SOURCES[name], "k")


def kernel(source: str) -> Kernel:
    """Wrap a source as a kernel found in a document."""
    return Kernel("opencl", "opencl", "k", source, 0, len(source), (), "identity")


def launch(n: int, local: int | None = 16, **changes: object) -> Launch:
    """Launch over ``n`` floats."""
    fields: dict[str, object] = {
        "order": ("a", "o", "n"),
        "dtypes": {"a": "f32", "o": "f32", "n": "i32"},
        "lanes": {"a": 1, "o": 1, "n": 1},
        "scalars": {"n": n},
        "buffers": {"a": 4 * n, "o": 4 * n},
        "local_bytes": {},
        "written": ("o",),
        "global_size": (n,),
        "local_size": None if local is None else (local,),
    }
    return Launch(**{**fields, **changes})  # type: ignore[arg-type]  # checked by the tests that use it
