from __future__ import annotations

import pytest
from lifted import ROOT, from_text, kernels

from mb_targets.model import Device
from mb_targets.opencl.state import state

DEVICE = Device("cpu-test", "", "cpu", "", "", "", 2, 256, 1 << 15, 1024)


@pytest.mark.parametrize(
    ("path", "family", "access", "bottleneck"),
    [
        ("examples/vadd.cl", "map", ("unit",), "memory"),
        ("examples/gelu.cl", "map", ("unit",), "math"),
        ("examples/matmul.cl", "contraction", ("strided", "unit"), "compute"),
        ("examples/transpose.cl", "transpose", ("strided", "unit"), "memory"),
        ("examples/conv3x3.cl", "stencil", ("unit",), "memory"),
        ("examples/softmax.cl", "row statistics", ("unit",), "math"),
        ("examples/row_sum.cl", "reduction", ("unit",), "memory"),
        ("examples/reduce_sum.cl", "reduction", ("unit",), "memory"),
        ("tests/data/relatives/stencil5x5.cl", "stencil", ("unit",), "compute"),
        ("tests/data/relatives/matmul_bt.cl", "contraction", ("unit",), "compute"),
        ("tests/data/relatives/masked_softmax.cl", "row statistics", ("unit",), "math"),
        ("tests/data/relatives/transpose_int.cl", "transpose", ("strided", "unit"), "memory"),
    ],
)
def test_state_names_family_accesses_and_bottleneck(
    path: str, family: str, access: tuple[str, ...], bottleneck: str
) -> None:
    found = state(*next(kernels(ROOT / path)), DEVICE)
    assert (found.family, found.access, found.bottleneck) == (family, access, bottleneck)


@pytest.mark.parametrize(
    ("path", "name", "family"),
    [
        ("maps.cl", "gather", "gather"),
        ("rows.cl", "running_sum", "scan"),
        ("rows.cl", "dot_rows", "contraction"),
        ("grids.cl", "jacobi_interior", "stencil"),
        ("grids.cl", "gemv", "contraction"),
        ("trees.cl", "softmax_groups", "row statistics"),
        ("trees.cl", "grid_stride_max", "reduction"),
    ],
)
def test_other_families_are_recognised(path: str, name: str, family: str) -> None:
    found = next(k for k in kernels(ROOT / "tests/data/lift" / path) if k[0].name == name)
    assert state(*found, DEVICE).family == family


def test_the_tree_and_the_one_item_form_of_a_softmax_share_a_family() -> None:
    tree = next(k for k in kernels(ROOT / "tests/data/lift/trees.cl") if k[0].name == "softmax_groups")
    plain = next(kernels(ROOT / "examples/softmax.cl"))
    assert state(*tree, DEVICE).family == state(*plain, DEVICE).family


def test_size_class_is_a_power_of_four_of_the_bytes() -> None:
    source = """// mb: global=(n,) n={n} a=f32[n] o=out f32[n]
        __kernel void k(__global const float *a, __global float *o)
        {{ int i = get_global_id(0); o[i] = a[i]; }}"""
    small, large = (state(*from_text(source.format(n=n)), DEVICE) for n in (1 << 17, 1 << 19))
    assert (small.size_class, large.size_class) == (10, 11)


def test_a_small_launch_is_bound_by_latency() -> None:
    source = """// mb: global=(n,) n=100 a=f32[n] o=out f32[n]
        __kernel void k(__global const float *a, __global float *o)
        { int i = get_global_id(0); o[i] = a[i]; }"""
    assert state(*from_text(source), DEVICE).bottleneck == "latency"


def test_a_kernel_that_does_not_lift_is_of_unknown_family() -> None:
    source = """// mb: global=(n,) n=100 a=f32[4*n] o=out f32[4*n]
        __kernel void k(__global const float4 *a, __global float4 *o)
        { int i = get_global_id(0); o[i] = exp(a[i]); }"""
    found = state(*from_text(source), DEVICE)
    assert (found.family, found.dtype, found.bottleneck) == ("unknown", "f32", "math")
