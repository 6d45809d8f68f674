// stage(32, 8)
// ('(G0 + 31) // 32 * 32', '(G1 + 31) // 32 * 8') (32, 8)
__kernel void transpose(__global const float *src, __global float *dst, const int width, const int height)
{
    const int x0 = get_group_id(0) * 32;
    const int y0 = get_group_id(1) * 32;
    if (x0 >= width || y0 >= height)
        return;
    int lx = get_local_id(0);
    int ly = get_local_id(1);
    __local float tile[1056];
    #pragma unroll 4
    for (int k = 0; k < 32; k += 8) {
        if (x0 + lx < width && y0 + ly + k < height) {
            tile[33 * ly + 33 * k + lx] = src[(y0 + ly + k) * width + x0 + lx];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll 4
    for (int k = 0; k < 32; k += 8) {
        if (x0 + ly + k < width && y0 + lx < height) {
            dst[(x0 + ly + k) * height + y0 + lx] = tile[33 * lx + ly + k];
        }
    }
}
