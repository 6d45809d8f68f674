// Sum of each row of a row-major matrix; one work-item takes one row.
// mb: global=(rows,) rows=4096 cols=1024 src=f32[rows*cols] dst=out f32[rows]
__kernel void row_sum(__global const float *src, __global float *dst, const int rows, const int cols)
{
    int row = get_global_id(0);
    if (row >= rows)
        return;

    float sum = 0.0f;
    for (int i = 0; i < cols; i++)
        sum += src[row * cols + i];
    dst[row] = sum;
}
