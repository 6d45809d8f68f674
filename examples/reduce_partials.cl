// The same first stage of a sum, for a host that adds up whatever partials it finds: only their sum matters
// (":sum"), so a variant may leave fewer of them; the rest hold zeros.
// mb: global=((n+255)//256*256,) local=(256,) n=4194304 x=f32[n] partial=out:sum f32[(n+255)//256]
__kernel void reduce_partials(__global const float *x, __global float *partial, const int n)
{
    __local float scratch[256];
    int gid = get_global_id(0);
    int lid = get_local_id(0);

    scratch[lid] = (gid < n) ? x[gid] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int stride = 1; stride < 256; stride *= 2) {
        if (lid % (2 * stride) == 0)
            scratch[lid] += scratch[lid + stride];
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    if (lid == 0)
        partial[get_group_id(0)] = scratch[0];
}
