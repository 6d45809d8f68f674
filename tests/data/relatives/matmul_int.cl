// mb: global=(cols,rows) rows=384 cols=384 depth=384
// mb: a=i32[rows*depth]{-100..100} b=i32[depth*cols]{-100..100} c=out i32[rows*cols]
__kernel void imatmul(__global const int *a, __global const int *b, __global int *c,
                      int rows, int cols, int depth)
{
    int x = get_global_id(0);
    int y = get_global_id(1);
    if (x >= cols || y >= rows) return;
    int total = 0;
    for (int d = 0; d < depth; d++)
        total += a[y * depth + d] * b[d * cols + x];
    c[y * cols + x] = total;
}
