#define T 16

// mb: global=(n,n) local=(16,16) n=64 A=f32[n*n] B=f32[n*n] C=out f32[n*n]
__kernel void tiled_matmul(__global const float *A, __global const float *B, __global float *C, int n)
{
    __local float a[T][T], b[T][T];
    int x = get_local_id(0), y = get_local_id(1), c = get_global_id(0), r = get_global_id(1);
    float s = 0;
    for (int t = 0; t < n; t += T) {
        a[y][x] = A[r * n + t + x];
        b[y][x] = B[(t + y) * n + c];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < T; i++)
            s += a[y][i] * b[i][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[r * n + c] = s;
}

// mb: global=((N+15)//16*16,(M+15)//16*16) local=(16,16) M=50 N=40 K=70 A=f32[M*K] B=f32[K*N] C=out f32[M*N]
__kernel void tiled_with_edges(__global const float *A, __global const float *B, __global float *C, int M, int N, int K)
{
    __local float tileA[T][T + 1];
    __local float tileB[T][T + 1];
    const int lx = get_local_id(0), ly = get_local_id(1);
    const int col = get_group_id(0) * T + lx, row = get_group_id(1) * T + ly;
    float acc = 0.0f;
    const int tiles = (K + T - 1) / T;
    for (int t = 0; t < tiles; t++) {
        const int k = t * T;
        tileA[ly][lx] = (row < M && k + lx < K) ? A[row * K + k + lx] : 0.0f;
        tileB[ly][lx] = (k + ly < K && col < N) ? B[(k + ly) * N + col] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < T; i++)
            acc += tileA[ly][i] * tileB[i][lx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < M && col < N)
        C[row * N + col] = acc;
}

// mb: global=(w,h) local=(16,16) w=64 h=48 a=f32[w*h] o=out f32[w*h]
__kernel void tiled_transpose(__global const float *a, __global float *o, int w, int h)
{
    __local float tile[T][T + 1];
    int lx = get_local_id(0), ly = get_local_id(1);
    int gx = get_group_id(0) * T, gy = get_group_id(1) * T;
    tile[ly][lx] = a[(gy + ly) * w + gx + lx];
    barrier(CLK_LOCAL_MEM_FENCE);
    o[(gx + ly) * h + gy + lx] = tile[lx][ly];
}

// mb: global=(m,) local=(32,) m=64 n=96 n%32 A=f32[m*n] x=f32[n] y=out f32[m]
__kernel void gemv_with_cached_vector(__global const float *A, __global const float *x, __global float *y, int n)
{
    __local float xs[32];
    int l = get_local_id(0), r = get_global_id(0);
    float s = 0;
    for (int t = 0; t < n; t += 32) {
        xs[l] = x[t + l];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 32; k++)
            s += A[r * n + t + k] * xs[k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    y[r] = s;
}
