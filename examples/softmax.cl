// Softmax of each row; one work-item takes one row.
// mb: global=(rows,) rows=2048 cols=1024 src=f32[rows*cols] dst=out f32[rows*cols]
__kernel void softmax(__global const float *src, __global float *dst, const int rows, const int cols)
{
    int row = get_global_id(0);
    if (row >= rows)
        return;

    float largest = -INFINITY;
    for (int i = 0; i < cols; i++)
        largest = fmax(largest, src[row * cols + i]);

    float sum = 0.0f;
    for (int i = 0; i < cols; i++)
        sum += exp(src[row * cols + i] - largest);

    for (int i = 0; i < cols; i++)
        dst[row * cols + i] = exp(src[row * cols + i] - largest) / sum;
}
