// jam(dim1, 4); lanes(dim0, 8)
// ('(G0 + 7) // 8', '(G1 + 3) // 4') None
__kernel __attribute__((vec_type_hint(float8)))
void matmul(__global const float *A, __global const float *B, __global float *C, const int n)
{
    const int col0 = get_global_id(0) * 8;
    const int row0 = get_global_id(1) * 4;
    if (col0 >= n || row0 >= n)
        return;
    if (row0 + 4 <= n && col0 + 8 <= n) {
        float8 sum_0 = 0.0f;
        float8 sum_1 = 0.0f;
        float8 sum_2 = 0.0f;
        float8 sum_3 = 0.0f;
        for (int k = 0; k < n; ++k) {
            float8 B_item = vload8(0, B + k * n + col0);
            sum_0 += A[row0 * n + k] * B_item;
            sum_1 += A[(row0 + 1) * n + k] * B_item;
            sum_2 += A[(row0 + 2) * n + k] * B_item;
            sum_3 += A[(row0 + 3) * n + k] * B_item;
        }
        vstore8(sum_0, 0, C + row0 * n + col0);
        vstore8(sum_1, 0, C + (row0 + 1) * n + col0);
        vstore8(sum_2, 0, C + (row0 + 2) * n + col0);
        vstore8(sum_3, 0, C + (row0 + 3) * n + col0);
    } else {
        for (int row = row0; row < min(row0 + 4, n); ++row) {
            for (int col = col0; col < min(col0 + 8, n); ++col) {
                float sum = 0.0f;
                for (int k = 0; k < n; ++k) {
                    sum += A[row * n + k] * B[k * n + col];
                }
                C[row * n + col] = sum;
            }
        }
    }
}
