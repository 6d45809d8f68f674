// rewrite(one_pass)
__kernel void layernorm(__global const float *src, __global const float *gamma, __global const float *beta,
                        __global float *dst, const int rows, const int cols, const float eps)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    float mean = 0.0f;
    float variance = 0.0f;
    for (int i = 0; i < cols; ++i) {
        float x = src[row * cols + i];
        float delta = x - mean;
        mean += delta / (float)(i + 1);
        variance += delta * (x - mean);
    }
    variance = variance / (float)cols;
    for (int i = 0; i < cols; ++i) {
        dst[row * cols + i] = (src[row * cols + i] - mean) / sqrt(variance + eps) * gamma[i] +
                beta[i];
    }
}
