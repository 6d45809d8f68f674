// mb: global=(rows*64,) local=(64,) rows=64 cols=1024 x=f32[rows*cols] out=out f32[rows]
__kernel void row_total(__global float *out, __global const float *x, int cols)
{
    if (get_local_id(0) == 0) {
        int row = get_group_id(0);
        float sum = 0.0f;
        for (int c = 0; c < cols; ++c)
            sum += x[row * cols + c];
        out[row] = sum;
    }
}
