// rewrite(reuse); rewrite(reciprocal); row_lanes(16, 2)
__kernel __attribute__((vec_type_hint(float16)))
void softmax(__global const float *src, __global float *dst, const int rows, const int cols)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    float largest = -INFINITY;
    int i_end = cols - cols % 32;
    float16 largest_v_0 = largest;
    float16 largest_v_1 = largest;
    for (int i = 0; i < i_end; i += 32) {
        largest_v_0 = fmax(largest_v_0, vload16(0, src + row * cols + i));
        largest_v_1 = fmax(largest_v_1, vload16(0, src + row * cols + i + 16));
    }
    largest_v_0 = fmax(largest_v_0, largest_v_1);
    float8 largest_8 = fmax(largest_v_0.lo, largest_v_0.hi);
    float4 largest_4 = fmax(largest_8.lo, largest_8.hi);
    float2 largest_2 = fmax(largest_4.lo, largest_4.hi);
    largest = fmax(largest, fmax(largest_2.x, largest_2.y));
    for (int i = i_end; i < cols; ++i) {
        largest = fmax(largest, src[row * cols + i]);
    }
    float sum = 0.0f;
    float16 sum_v_0 = 0.0f;
    float16 sum_v_1 = 0.0f;
    for (int i = 0; i < i_end; i += 32) {
        float16 kept_dst_0 = exp(vload16(0, src + row * cols + i) - largest);
        float16 kept_dst_1 = exp(vload16(0, src + row * cols + i + 16) - largest);
        sum_v_0 += kept_dst_0;
        sum_v_1 += kept_dst_1;
        vstore16(kept_dst_0, 0, dst + row * cols + i);
        vstore16(kept_dst_1, 0, dst + row * cols + i + 16);
    }
    sum_v_0 += sum_v_1;
    float8 sum_8 = sum_v_0.lo + sum_v_0.hi;
    float4 sum_4 = sum_8.lo + sum_8.hi;
    float2 sum_2 = sum_4.lo + sum_4.hi;
    sum += sum_2.x + sum_2.y;
    for (int i = i_end; i < cols; ++i) {
        float kept_dst = exp(src[row * cols + i] - largest);
        sum += kept_dst;
        dst[row * cols + i] = kept_dst;
    }
    float inverse_sum = 1.0f / sum;
    int i_end1 = cols - cols % 16;
    for (int i = 0; i < i_end1; i += 16) {
        vstore16(vload16(0, dst + row * cols + i) * inverse_sum, 0, dst + row * cols + i);
    }
    for (int i = i_end1; i < cols; ++i) {
        dst[row * cols + i] = dst[row * cols + i] * inverse_sum;
    }
}
