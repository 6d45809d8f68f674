// C = A * B for square row-major matrices: one work-item computes one element of C.
// mb: global=(n,n) n=512 A=f32[n*n] B=f32[n*n] C=out f32[n*n]
__kernel void matmul(__global const float *A, __global const float *B, __global float *C, const int n)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= n || col >= n)
        return;

    float sum = 0.0f;
    for (int k = 0; k < n; k++)
        sum += A[row * n + k] * B[k * n + col];
    C[row * n + col] = sum;
}
