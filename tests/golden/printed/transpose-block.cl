// jam(dim0, 2); lanes(dim1, 4)
// ('(G0 + 1) // 2', '(G1 + 3) // 4') None
__kernel void transpose(__global const float *src, __global float *dst, const int width, const int height)
{
    const int x0 = get_global_id(0) * 2;
    const int y0 = get_global_id(1) * 4;
    if (x0 >= width || y0 >= height)
        return;
    if (y0 + 4 <= height && x0 + 2 <= width) {
        vstore4((float4)(src[y0 * width + x0], src[(y0 + 1) * width + x0],
                src[(y0 + 2) * width + x0], src[(y0 + 3) * width + x0]), 0, dst + x0 * height + y0);
        vstore4((float4)(src[y0 * width + x0 + 1], src[(y0 + 1) * width + x0 + 1],
                src[(y0 + 2) * width + x0 + 1], src[(y0 + 3) * width + x0 + 1]), 0,
                dst + (x0 + 1) * height + y0);
    } else {
        for (int y = y0; y < min(y0 + 4, height); ++y) {
            for (int x = x0; x < min(x0 + 2, width); ++x) {
                dst[x * height + y] = src[y * width + x];
            }
        }
    }
}
