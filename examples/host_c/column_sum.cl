// Sum of each column of a row-major matrix; one work-item takes one column.
// mb: global=(cols,) rows=1024 cols=4096 src=f32[rows*cols] dst=out f32[cols]
__kernel void column_sum(__global const float *src, __global float *dst, const int rows, const int cols)
{
    int col = get_global_id(0);
    if (col >= cols)
        return;

    float sum = 0.0f;
    for (int i = 0; i < rows; i++)
        sum += src[i * cols + col];
    dst[col] = sum;
}
