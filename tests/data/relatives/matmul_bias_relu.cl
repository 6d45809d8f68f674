// mb: global=(N,M) M=512 N=512 K=512
// mb: lhs=f32[M*K] rhs=f32[K*N] bias=f32[N] res=out f32[M*N]
__kernel void linear_relu(const __global float* lhs, const __global float* rhs, const __global float* bias,
                          __global float* res, const uint M, const uint N, const uint K)
{
    const uint c = get_global_id(0);
    const uint r = get_global_id(1);
    if (c >= N || r >= M) return;
    float t = bias[c];
    for (uint q = 0; q < K; q++) {
        t += lhs[r * K + q] * rhs[q * N + c];
    }
    res[r * N + c] = max(t, 0.0f);
}
