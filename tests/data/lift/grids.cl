// mb: global=(w,h) w=50 h=30 a=f32[w*h] f=f32[9] o=out f32[w*h]
__kernel void conv_inline(__global const float *a, __constant float *f, __global float *o, int w, int h)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= w || y >= h)
        return;
    float s = 0;
    for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++) {
            const int u = x + i, v = y + j;
            s += (u >= 0 && u < w && v >= 0 && v < h) ? a[v * w + u] * f[(j + 1) * 3 + i + 1] : 0.0f;
        }
    o[y * w + x] = s;
}

// mb: global=(w,h) w=50 h=30 a=f32[w*h] o=inout f32[w*h]
__kernel void jacobi_interior(__global const float *a, __global float *o, int w, int h)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x > 0 && x < w - 1 && y > 0 && y < h - 1)
        o[y * w + x] = 0.25f * (a[y * w + x - 1] + a[y * w + x + 1] + a[(y - 1) * w + x] + a[(y + 1) * w + x]);
}

// mb: global=(M,N) M=40 N=30 K=20 batch=1 A=f32[M*K] B=f32[K*N] C=inout f32[M*N] alpha=1.5 beta=0.5
__kernel void sgemm(int M, int N, int K, float alpha, float beta, __global const float *A,
                    __global const float *B, __global float *C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    if (i < M && j < N) {
        float acc = 0.0f;
        for (int k = 0; k < K; ++k)
            acc += A[i + k * M] * B[k + j * K];
        C[i + j * M] = alpha * acc + beta * C[i + j * M];
    }
}

// mb: global=(n,m,b) n=20 m=30 k=10 b=3 x=f32[b*m*k] y=f32[b*k*n] z=out f32[b*m*n]
__kernel void batched(__global const float *x, __global const float *y, __global float *z, int n, int m, int k)
{
    int col = get_global_id(0), row = get_global_id(1), batch = get_global_id(2);
    __global const float *xs = x + batch * m * k;
    __global const float *ys = y + batch * k * n;
    float t = 0.0f;
    for (int i = 0; i < k; i++)
        t += xs[row * k + i] * ys[i * n + col];
    z[batch * m * n + row * n + col] = t;
}

// mb: global=(m,) m=50 n=60 A=f32[m*n] x=f32[n] y=out f32[m]
__kernel void gemv(__global const float *A, __global const float *x, __global float *y, int m, int n)
{
    int i = get_global_id(0);
    if (i >= m)
        return;
    float dot = 0;
    for (int j = 0; j < n; j++)
        dot = dot + x[j] * A[i * n + j];
    y[i] = dot;
}

// mb: global=(w*h,) w=50 h=30 a=f32[w*h] o=out f32[w*h]
__kernel void flat_transpose(__global const float *a, __global float *o, int w, int h)
{
    int gid = get_global_id(0);
    if (gid < w * h) {
        int y = gid / w;
        int x = gid % w;
        o[x * h + y] = a[gid];
    }
}

#define LOOP(v, n) for (int v = 0; v < (n); ++v)
#define MAXF(a, b) ((a) > (b) ? (a) : (b))

// mb: global=(w,h) w=40 h=20 a=f32[w*h] o=out f32[w*h]
__kernel void dilate(__global const float *a, __global float *o, int w, int h)
{
    const int x = get_global_id(0), y = get_global_id(1);
    const int id = y * w + x;
    if (x >= w || y >= h)
        return;
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {
        o[id] = a[id];
        return;
    }
    float m = a[id];
    LOOP(dy, 3) LOOP(dx, 3) m = MAXF(m, a[(y + dy - 1) * w + x + dx - 1]);
    o[id] = m;
}
