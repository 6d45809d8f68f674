// 3x3 convolution of an image; what lies outside the image counts as zero.
// mb: global=(width,height) width=1024 height=1024
// mb: src=f32[width*height] filter=f32[9] dst=out f32[width*height]
__kernel void conv3x3(__global const float *src, __global const float *filter, __global float *dst,
                      const int width, const int height)
{
    int x = get_global_id(0);
    int y = get_global_id(1);
    if (x >= width || y >= height)
        return;

    float sum = 0.0f;
    for (int j = -1; j <= 1; j++) {
        for (int i = -1; i <= 1; i++) {
            int u = x + i;
            int v = y + j;
            if (u >= 0 && u < width && v >= 0 && v < height)
                sum += src[v * width + u] * filter[(j + 1) * 3 + (i + 1)];
        }
    }
    dst[y * width + x] = sum;
}
