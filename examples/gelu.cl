// GELU activation in its tanh form, written as it stands in the paper.
// mb: global=(n,) n=2097152 src=f32[n] dst=out f32[n]
__kernel void gelu(__global const float *src, __global float *dst, const int n)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    float x = src[i];
    dst[i] = 0.5f * x * (1.0f + tanh(0.7978845608f * (x + 0.044715f * pow(x, 3.0f))));
}
