import pytest


@pytest.mark.needs("opencl")
@pytest.mark.parametrize(
    ("source", "alignment"),
    [
        ("__kernel void k(__global float *a) { a[0] = 1; }", 1),
        ("((__global const float4 *)a)[0]", 16),
        ("__global double8 const *p; __global char2 *q;", 64),
        ("(__global float3*)a", 16),
        ("vload16(0, a)", 1),
    ],
)
def test_buffers_are_aligned_for_the_vector_pointers_of_the_source(source, alignment):
    from mb_targets.opencl.program import vector_alignment

    assert vector_alignment(source) == alignment
