// mb: global=((count+127)//128*128,) local=(128,) count=4194304
// mb: values=f32[count] maxima=out f32[(count+127)//128]
__kernel void reduce_max(__global const float *values, __global float *maxima, unsigned int count)
{
    __local float tile[128];
    unsigned int t = get_local_id(0);
    unsigned int g = get_global_id(0);
    tile[t] = g < count ? values[g] : -INFINITY;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (unsigned int half_size = 64; half_size > 0; half_size >>= 1) {
        if (t < half_size)
            tile[t] = fmax(tile[t], tile[t + half_size]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0)
        maxima[get_group_id(0)] = tile[0];
}
