// rewrite(hoist); row_lanes(8, 1)
__kernel __attribute__((vec_type_hint(float8)))
void layernorm(__global const float *src, __global const float *gamma, __global const float *beta,
                        __global float *dst, const int rows, const int cols, const float eps)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    float mean = 0.0f;
    int i_end = cols - cols % 8;
    float8 mean_v = 0.0f;
    for (int i = 0; i < i_end; i += 8) {
        mean_v += vload8(0, src + row * cols + i);
    }
    float4 mean_4 = mean_v.lo + mean_v.hi;
    float2 mean_2 = mean_4.lo + mean_4.hi;
    mean += mean_2.x + mean_2.y;
    for (int i = i_end; i < cols; ++i) {
        mean += src[row * cols + i];
    }
    mean = mean / (float)cols;
    float variance = 0.0f;
    float8 variance_v = 0.0f;
    for (int i = 0; i < i_end; i += 8) {
        float8 d = vload8(0, src + row * cols + i) - mean;
        variance_v += d * d;
    }
    float4 variance_4 = variance_v.lo + variance_v.hi;
    float2 variance_2 = variance_4.lo + variance_4.hi;
    variance += variance_2.x + variance_2.y;
    for (int i = i_end; i < cols; ++i) {
        float d = src[row * cols + i] - mean;
        variance += d * d;
    }
    variance = variance / (float)cols;
    float i_invariant = sqrt(variance + eps);
    for (int i = 0; i < i_end; i += 8) {
        vstore8((vload8(0, src + row * cols + i) - mean) / i_invariant * vload8(0, gamma + i) +
                vload8(0, beta + i), 0, dst + row * cols + i);
    }
    for (int i = i_end; i < cols; ++i) {
        dst[row * cols + i] = (src[row * cols + i] - mean) / i_invariant * gamma[i] + beta[i];
    }
}
