// mb: global=(n,) n=1000 opts="-DOFFSET=3 -DGAIN=0.25f" a=f32[n] o=out f32[n]
__kernel void with_options(__global const float *a, __global float *o)
{
    int i = get_global_id(0);
    o[i] = GAIN * a[i] + OFFSET;
}
