// rewrite(powers); rewrite(tanh); lanes(dim0, 16)
// ('(G0 + 15) // 16',) None
__kernel __attribute__((vec_type_hint(float16)))
void gelu(__global const float *src, __global float *dst, const int n)
{
    const int i0 = get_global_id(0) * 16;
    if (i0 >= n)
        return;
    if (i0 + 16 <= n) {
        float16 x = vload16(0, src + i0);
        vstore16(0.5f * x * (2.0f / (1.0f + exp(-2.0f * (0.7978845608f * (x + 0.044715f * (x * x *
                x)))))), 0, dst + i0);
    } else {
        for (int i = i0; i < min(i0 + 16, n); ++i) {
            float x = src[i];
            dst[i] = 0.5f * x * (2.0f / (1.0f + exp(-2.0f * (0.7978845608f * (x + 0.044715f * (x *
                    x * x))))));
        }
    }
}
