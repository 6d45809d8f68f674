#pragma OPENCL EXTENSION cl_khr_fp64 : enable

// mb: global=(N,N) N=384 X=f64[N*N] Y=f64[N*N] Z=out f64[N*N]
__kernel void dgemm_naive(__global const double *X, __global const double *Y, __global double *Z, ulong N)
{
    size_t column = get_global_id(0);
    size_t line = get_global_id(1);
    if (line >= N || column >= N) return;
    double dot_product = 0.0;
    for (size_t k = 0; k < N; k++)
        dot_product += X[line * N + k] * Y[k * N + column];
    Z[line * N + column] = dot_product;
}
