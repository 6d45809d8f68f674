// partials(4); row_lanes(16, 4)
// ('4',) None
__kernel __attribute__((vec_type_hint(float16)))
void reduce_partials(__global const float *x, __global float *partial, const int n)
{
    const int part = get_global_id(0);
    if (part >= min(4, (n + 255) / 256))
        return;
    int parts = min(4, (n + 255) / 256);
    int share = (n + parts - 1) / parts;
    int first = part * share;
    int last = min(first + share, n);
    float sum = 0.0f;
    int i_end = last - (last - first) % 64;
    float16 sum_v_0 = 0.0f;
    float16 sum_v_1 = 0.0f;
    float16 sum_v_2 = 0.0f;
    float16 sum_v_3 = 0.0f;
    for (int i = first; i < i_end; i += 64) {
        sum_v_0 += vload16(0, x + i);
        sum_v_1 += vload16(0, x + i + 16);
        sum_v_2 += vload16(0, x + i + 32);
        sum_v_3 += vload16(0, x + i + 48);
    }
    sum_v_0 += sum_v_2;
    sum_v_1 += sum_v_3;
    sum_v_0 += sum_v_1;
    float8 sum_8 = sum_v_0.lo + sum_v_0.hi;
    float4 sum_4 = sum_8.lo + sum_8.hi;
    float2 sum_2 = sum_4.lo + sum_4.hi;
    sum += sum_2.x + sum_2.y;
    for (int i = i_end; i < last; ++i) {
        sum += x[i];
    }
    partial[part] = sum;
    for (int group = part + parts; group < (n + 255) / 256; group += parts) {
        partial[group] = 0.0f;
    }
}
