#define IN(y, x) in[(y) * cols + (x)]
#define OUT(y, x) out[(y) * rows + (x)]

// mb: global=(rows,cols) rows=2048 cols=2048 in=i32[rows*cols] out=out i32[rows*cols]
kernel void transpose_int(global const int *in, global int *out, int rows, int cols)
{
    int r = get_global_id(0);
    int c = get_global_id(1);
    if (r < rows && c < cols)
        OUT(c, r) = IN(r, c);
}
