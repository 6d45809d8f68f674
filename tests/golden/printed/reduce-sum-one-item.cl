// row_lanes(16, 4)
// ('G0 // L0',) None
__kernel __attribute__((vec_type_hint(float16)))
void reduce_sum(__global const float *x, __global float *partial, const int n)
{
    const int group = get_global_id(0);
    float sum = 0.0f;
    int lid_stop = min(256, n - 256 * group);
    int lid_end = lid_stop - lid_stop % 64;
    float16 sum_v_0 = 0.0f;
    float16 sum_v_1 = 0.0f;
    float16 sum_v_2 = 0.0f;
    float16 sum_v_3 = 0.0f;
    for (int lid = 0; lid < lid_end; lid += 64) {
        sum_v_0 += vload16(0, x + 256 * group + lid);
        sum_v_1 += vload16(0, x + 256 * group + lid + 16);
        sum_v_2 += vload16(0, x + 256 * group + lid + 32);
        sum_v_3 += vload16(0, x + 256 * group + lid + 48);
    }
    sum_v_0 += sum_v_2;
    sum_v_1 += sum_v_3;
    sum_v_0 += sum_v_1;
    float8 sum_8 = sum_v_0.lo + sum_v_0.hi;
    float4 sum_4 = sum_8.lo + sum_8.hi;
    float2 sum_2 = sum_4.lo + sum_4.hi;
    sum += sum_2.x + sum_2.y;
    for (int lid = lid_end; lid < lid_stop; ++lid) {
        sum += x[256 * group + lid];
    }
    partial[group] = sum;
}
