// Layer normalisation of each row with a learned scale and shift; one work-item takes one row.
// mb: global=(rows,) rows=2048 cols=1024 eps=1e-5
// mb: src=f32[rows*cols] gamma=f32[cols] beta=f32[cols] dst=out f32[rows*cols]
__kernel void layernorm(__global const float *src, __global const float *gamma, __global const float *beta,
                        __global float *dst, const int rows, const int cols, const float eps)
{
    int row = get_global_id(0);
    if (row >= rows)
        return;

    float mean = 0.0f;
    for (int i = 0; i < cols; i++)
        mean += src[row * cols + i];
    mean /= cols;

    float variance = 0.0f;
    for (int i = 0; i < cols; i++) {
        float d = src[row * cols + i] - mean;
        variance += d * d;
    }
    variance /= cols;

    for (int i = 0; i < cols; i++)
        dst[row * cols + i] = (src[row * cols + i] - mean) / sqrt(variance + eps) * gamma[i] + beta[i];
}
