// mb: global=(w,h) w=1024 h=1024 image=f32[w*h] weights=f32[25] result=out f32[w*h]
__kernel void blur5(__global const float *image, __constant float *weights, __global float *result,
                    int w, int h)
{
    int col = get_global_id(0), line = get_global_id(1);
    if (col < w && line < h) {
        float s = 0.0f;
        for (int dy = 0; dy < 5; dy++)
            for (int dx = 0; dx < 5; dx++) {
                int yy = line + dy - 2, xx = col + dx - 2;
                if (yy >= 0 && yy < h && xx >= 0 && xx < w)
                    s += weights[dy * 5 + dx] * image[yy * w + xx];
            }
        result[line * w + col] = s;
    }
}
