"""What does not lift says why, in words for the user; and wrong trees are not taken for right ones."""

from __future__ import annotations

import pytest
from lifted import from_text, refusal

from mb_targets.model import LaunchSpec
from mb_targets.opencl.detect import find_kernels
from mb_targets.opencl.lift import lift

ITEM = """// mb: global=(n,) n=64 a=f32[n] o=out f32[n]
__kernel void k(__global const float *a, __global float *o, int n)
{{ int i = get_global_id(0); {body} }}"""

TREE = """// mb: global=(n,) local=(64,) n=640 n%64 a=f32[n] o=out f32[n]
__kernel void k(__global const float *a, __global float *o, int n)
{{
    __local float t[64];
    int l = get_local_id(0), i = get_global_id(0);
    float m = a[i];
    t[l] = a[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    {body}
}}"""

STEPS = """for (int s = 32; s > 0; s >>= 1) {
        if (l < s) t[l] += t[l + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }"""


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("float4 v = vload4(i, a); vstore4(v, i, o);", "uses float4"),
        ("o[i] = frobnicate(a[i]);", "calls frobnicate"),
        ("for (int j = 0; j < n; j++) { if (a[j] < 0) break; o[i] = a[j]; }", "break"),
        ("int j = i; while (a[j] > 0) { o[j] = 0; j++; }", "loop while a[j] > 0"),
        ("int j = 0; do { o[i] = j; j++; } while (j < n);", "uses do"),
        ("switch (n) { case 1: o[i] = 1; }", "uses switch"),
        ("float w[3] = {1, 2, 3}; o[i] = w[i % 3];", "keeps a private array w"),
        ("o[i] = as_int(a[i]);", "calls as_int"),
        ("atomic_add((__global int *)o, 1);", "calls atomic_add"),
        ("for (int j = 0; j < n; j++) { o[j] = j; j++; }", "changes loop variable j"),
        ("int j; for (j = 0; j < n; j++) o[j] = 1; o[0] = j;", "reads loop variable j after its loop"),
        ("n = n / 2; o[i] = n;", "changes its parameter n"),
        ("o[i] = UNKNOWN;", "UNKNOWN"),
        ("for (int j = 1; j < n; j *= 2) o[j] = 1;", "not known here"),
        ("if (i > 3) { if (a[i] > 0) return; o[i] = 1; } o[i] = 2;", "return in the middle"),
        ("__global const float *p = a; if (i > 3) p += 2; o[i] = *p;", "pointer p moves inside a branch"),
    ],
)
def test_the_reason_names_what_the_form_has_no_words_for(body: str, words: str) -> None:
    kernel = next(iter(find_kernels(ITEM.format(body=body), "opencl")))
    launch = from_text(ITEM.format(body="o[i] = a[i];"))[1]
    found = lift(kernel, launch)
    assert words in getattr(found, "reason", "it lifts")


def test_a_tree_that_stops_early_does_not_lift() -> None:
    body = STEPS.replace("s > 0", "s > 1") + "if (l == 0) o[get_group_id(0)] = t[0];"
    assert "before every work item's value is in it" in refusal(TREE.format(body=body))


def test_a_tree_that_adds_an_element_twice_does_not_lift() -> None:
    body = STEPS.replace("l < s", "l <= s && l + s < 64") + "if (l == 0) o[get_group_id(0)] = t[0];"
    assert "race" in refusal(TREE.format(body=body))


def test_a_tree_without_its_barrier_does_not_lift() -> None:
    body = STEPS.replace("barrier(CLK_LOCAL_MEM_FENCE);", "") + "if (l == 0) o[get_group_id(0)] = t[0];"
    assert "a barrier is missing" in refusal(TREE.format(body=body))


def test_reading_the_result_before_the_last_barrier_does_not_lift() -> None:
    last = "if (l < 1) t[l] += t[l + 1];"
    body = STEPS.replace("s > 0", "s > 1") + last + "o[i] = t[0];"
    assert "a barrier is missing" in refusal(TREE.format(body=body))


def test_storing_the_next_values_before_all_have_read_the_result_does_not_lift() -> None:
    body = STEPS + "float r = t[0]; t[l] = r * a[i]; barrier(CLK_LOCAL_MEM_FENCE);" + STEPS + "o[i] = t[0];"
    assert "a barrier is missing" in refusal(TREE.format(body=body))


def test_a_share_that_is_used_for_more_than_the_reduction_does_not_lift() -> None:
    source = """// mb: global=(64,) local=(64,) n=640 a=f32[n] o=out f32[64]
        __kernel void k(__global const float *a, __global float *o, int n)
        {
            __local float t[64];
            int l = get_local_id(0);
            float s = 0;
            for (int j = l; j < n; j += 64) s += a[j];
            t[l] = s;
            barrier(CLK_LOCAL_MEM_FENCE);
            %s
            o[l] = s / t[0];
        }"""
    assert "share of a sum after it was added up" in refusal(source % STEPS)


def test_a_value_that_was_loaded_before_its_buffer_changed_does_not_lift() -> None:
    source = """// mb: global=(64,) local=(64,) a=inout f32[64] o=out f32[64]
        __kernel void k(__global float *a, __global float *o)
        {
            __local float t[64];
            int l = get_local_id(0);
            float x = a[l];
            t[l] = x;
            barrier(CLK_LOCAL_MEM_FENCE);
            a[l] = 0;
            %s
            o[l] = x / t[0];
        }"""
    assert "loaded from" in refusal(source % STEPS)


def test_a_barrier_behind_a_branch_of_some_items_does_not_lift() -> None:
    source = """// mb: global=(64,) local=(64,) n=60 a=f32[64] o=out f32[64]
        __kernel void k(__global const float *a, __global float *o, int n)
        {
            __local float t[64];
            int l = get_local_id(0);
            if (l >= n) return;
            t[l] = a[l];
            barrier(CLK_LOCAL_MEM_FENCE);
            %s
            o[l] = t[0];
        }"""
    assert "barrier that some work items do not reach" in refusal(source % STEPS)


def test_a_tile_that_is_read_at_unknown_places_does_not_lift() -> None:
    body = "float s = t[(l + n) % 64]; o[i] = s; t[l] = s; barrier(CLK_LOCAL_MEM_FENCE); o[i] += t[63 - l];"
    assert refusal(TREE.format(body=body))


def test_a_tile_without_its_barrier_does_not_lift() -> None:
    source = """// mb: global=(m,) local=(32,) m=64 n=96 n%32 A=f32[m*n] x=f32[n] y=out f32[m]
        __kernel void k(__global const float *A, __global const float *x, __global float *y, int n)
        {
            __local float xs[32];
            int l = get_local_id(0), r = get_global_id(0);
            float s = 0;
            for (int t = 0; t < n; t += 32) {
                xs[l] = x[t + l];
                barrier(CLK_LOCAL_MEM_FENCE);
                for (int k = 0; k < 32; k++)
                    s += A[r * n + t + k] * xs[k];
            }
            y[r] = s;
        }"""
    assert refusal(source)


def test_an_unknown_work_group_size_is_asked_for() -> None:
    kernel, _ = from_text(TREE.format(body="o[i] = t[l];"))
    launch = LaunchSpec((), (), ("640",))
    assert "work-group size is not known" in getattr(lift(kernel, launch), "reason", "")
