// jam(dim1, 2); lanes(dim0, 4); keep_launch()
__kernel __attribute__((vec_type_hint(float4)))
void matmul(__global const float *A, __global const float *B, __global float *C, const int n)
{
    const int col0 = get_global_id(0) * 4;
    const int row0 = get_global_id(1) * 2;
    if ((long)get_global_id(0) * 4 >= n || (long)get_global_id(1) * 2 >= n)
        return;
    if (row0 + 2 <= n && col0 + 4 <= n) {
        float4 sum_0 = 0.0f;
        float4 sum_1 = 0.0f;
        for (int k = 0; k < n; ++k) {
            float4 B_item = vload4(0, B + k * n + col0);
            sum_0 += A[row0 * n + k] * B_item;
            sum_1 += A[(row0 + 1) * n + k] * B_item;
        }
        vstore4(sum_0, 0, C + row0 * n + col0);
        vstore4(sum_1, 0, C + (row0 + 1) * n + col0);
    } else {
        for (int row = row0; row < min(row0 + 2, n); ++row) {
            for (int col = col0; col < min(col0 + 4, n); ++col) {
                float sum = 0.0f;
                for (int k = 0; k < n; ++k) {
                    sum += A[row * n + k] * B[k * n + col];
                }
                C[row * n + col] = sum;
            }
        }
    }
}
