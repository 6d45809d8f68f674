// mb: global=(n,m) m=512 n=512 k=512 A=f32[m*k] Bt=f32[n*k] C=out f32[m*n]
__kernel void matmul_bt(__global const float *A, __global const float *Bt, __global float *C,
                        int m, int n, int k)
{
    const int j = get_global_id(0);
    const int i = get_global_id(1);
    if (i < m && j < n) {
        float acc = 0;
        for (int p = 0; p < k; ++p)
            acc += A[i * k + p] * Bt[j * k + p];
        C[i * n + j] = acc;
    }
}
