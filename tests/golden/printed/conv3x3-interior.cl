// lanes(dim0, 16)
// ('(G0 + 15) // 16', 'G1') None
__kernel __attribute__((vec_type_hint(float16)))
void conv3x3(__global const float *src, __global const float *filter, __global float *dst,
                      const int width, const int height)
{
    const int x0 = get_global_id(0) * 16;
    const int y = get_global_id(1);
    if (x0 >= width || y >= height)
        return;
    if (0 < x0 && x0 + 16 < width && 0 < y && y + 1 < height) {
        float16 sum = 0.0f;
        for (int j = -1; j < 2; ++j) {
            for (int i = -1; i < 2; ++i) {
                sum += vload16(0, src + (y + j) * width + x0 + i) * filter[3 * j + i + 4];
            }
        }
        vstore16(sum, 0, dst + y * width + x0);
    } else {
        for (int x = x0; x < min(x0 + 16, width); ++x) {
            float sum = 0.0f;
            for (int j = -1; j < 2; ++j) {
                for (int i = -1; i < 2; ++i) {
                    int u = x + i;
                    int v = y + j;
                    if (u >= 0 && u < width && v >= 0 && v < height) {
                        sum += src[v * width + u] * filter[3 * j + i + 4];
                    }
                }
            }
            dst[y * width + x] = sum;
        }
    }
}
