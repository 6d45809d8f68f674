#define GROUP 256

// mb: global=((total+255)//256*256,) local=(256,) total=4194304
// mb: data=i32[total]{-1000..1000} sums=out i32[(total+255)//256]
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void sum_int(__global const int *data, __global int *sums, const int total)
{
    __local int buf[GROUP];
    const int me = get_local_id(0);
    const int at = get_group_id(0) * GROUP + me;
    buf[me] = 0;
    if (at < total)
        buf[me] = data[at];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = 1; d < GROUP; d <<= 1) {
        if ((me & (2 * d - 1)) == 0)
            buf[me] += buf[me + d];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (me == 0)
        sums[get_group_id(0)] = buf[0];
}
