#pragma OPENCL EXTENSION cl_khr_fp64 : enable

// mb: global=(len,) len=1048576 v=f64[len] r=out f64[len]
__kernel void silu(__global const double *v, __global double *r, const ulong len)
{
    ulong gid = get_global_id(0);
    if (gid < len)
        r[gid] = v[gid] / (1.0 + exp(-v[gid]));
}
