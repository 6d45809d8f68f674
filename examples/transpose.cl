// dst = transpose of src, a height x width row-major matrix.
// mb: global=(width,height) width=2048 height=2048 src=f32[width*height] dst=out f32[width*height]
__kernel void transpose(__global const float *src, __global float *dst, const int width, const int height)
{
    int x = get_global_id(0);
    int y = get_global_id(1);
    if (x >= width || y >= height)
        return;
    dst[x * height + y] = src[y * width + x];
}
