// chunk(dim0, 1024); row_lanes(16, 1); wide_ids()
// ('(G0 + 1023) // 1024',) None
__kernel __attribute__((vec_type_hint(float16)))
void vadd(__global const float *a, __global const float *b, __global float *c, const int n)
{
    const size_t i0 = get_global_id(0) * 1024;
    if ((long)i0 >= n)
        return;
    size_t i1 = min(i0 + 1024UL, (ulong)n);
    size_t i_end = i1 - (i1 - i0) % 16;
    for (size_t i = i0; i < i_end; i += 16) {
        vstore16(vload16(0, a + i) + vload16(0, b + i), 0, c + i);
    }
    for (size_t i = i_end; i < i1; ++i) {
        c[i] = a[i] + b[i];
    }
}
