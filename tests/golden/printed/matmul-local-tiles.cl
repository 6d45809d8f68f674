// stage(16, 2, 16)
// ('(G0 + 31) // 32 * 16', '(G1 + 31) // 32 * 16') (16, 16)
__kernel void matmul(__global const float *A, __global const float *B, __global float *C, const int n)
{
    const int col0 = get_group_id(0) * 32;
    const int row0 = get_group_id(1) * 32;
    if (col0 >= n || row0 >= n)
        return;
    int lx = get_local_id(0);
    int ly = get_local_id(1);
    __local float A_tile[544];
    __local float B_tile[528];
    float sum_0_0 = 0.0f;
    float sum_0_1 = 0.0f;
    float sum_1_0 = 0.0f;
    float sum_1_1 = 0.0f;
    for (int k0 = 0; k0 < n; k0 += 16) {
        for (int e = 16 * ly + lx; e < 512; e += 256) {
            A_tile[17 * (e / 16) + e % 16] = k0 + e % 16 < n && row0 + e / 16 < n ? A[(row0 + e /
                    16) * n + k0 + e % 16] : 0.0f;
        }
        for (int e0 = 16 * ly + lx; e0 < 512; e0 += 256) {
            B_tile[33 * (e0 / 32) + e0 % 32] = k0 + e0 / 32 < n && col0 + e0 % 32 < n ? B[(k0 + e0 /
                    32) * n + col0 + e0 % 32] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll 16
        for (int k = 0; k < 16; ++k) {
            float A_tile_item_0 = A_tile[17 * ly + k];
            float A_tile_item_1 = A_tile[17 * ly + k + 272];
            float B_tile_item_0 = B_tile[33 * k + lx];
            float B_tile_item_1 = B_tile[33 * k + lx + 16];
            sum_0_0 += A_tile_item_0 * B_tile_item_0;
            sum_0_1 += A_tile_item_1 * B_tile_item_0;
            sum_1_0 += A_tile_item_0 * B_tile_item_1;
            sum_1_1 += A_tile_item_1 * B_tile_item_1;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (col0 + lx < n && row0 + ly < n) {
        C[(row0 + ly) * n + col0 + lx] = sum_0_0;
    }
    if (col0 + lx < n && row0 + ly + 16 < n) {
        C[(row0 + ly + 16) * n + col0 + lx] = sum_0_1;
    }
    if (col0 + lx + 16 < n && row0 + ly < n) {
        C[(row0 + ly) * n + col0 + lx + 16] = sum_1_0;
    }
    if (col0 + lx + 16 < n && row0 + ly + 16 < n) {
        C[(row0 + ly + 16) * n + col0 + lx + 16] = sum_1_1;
    }
}
