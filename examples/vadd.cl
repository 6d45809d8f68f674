// c = a + b. There may be nothing to gain here, and then the tool says so.
// mb: global=(n,) n=4194304 a=f32[n] b=f32[n] c=out f32[n]
__kernel void vadd(__global const float *a, __global const float *b, __global float *c, const int n)
{
    int i = get_global_id(0);
    if (i < n)
        c[i] = a[i] + b[i];
}
