// y = alpha * x + y
// mb: global=(n,) n=4194304 alpha=1.5 x=f32[n] y=inout f32[n]
__kernel void saxpy(const float alpha, __global const float *x, __global float *y, const int n)
{
    int i = get_global_id(0);
    if (i < n)
        y[i] = alpha * x[i] + y[i];
}
