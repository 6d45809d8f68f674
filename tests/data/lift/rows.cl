// mb: global=(rows,) rows=70 cols=130 a=f32[rows*cols] o=out f32[rows*cols]
__kernel void softmax_pointers(__global const float *a, __global float *o, int rows, int cols)
{
    int r = get_global_id(0), i;
    if (r >= rows)
        return;
    a += r * cols;
    o += r * cols;
    float m = -INFINITY, s = 0, e;
    for (i = 0; i < cols; ++i)
        if (a[i] > m)
            m = a[i];
    for (i = 0; i < cols; ++i) {
        e = exp(a[i] - m);
        o[i] = e;
        s = s + e;
    }
    s = 1 / s;
    for (i = 0; i < cols; ++i)
        o[i] *= s;
}

// mb: global=(rows,) rows=70 cols=130 a=f32[rows*cols] o=out f32[rows*2]
__kernel void extremes(__global const float *a, __global float *o, int rows, int cols)
{
    int r = get_global_id(0);
    if (r < rows) {
        __global const float *row = &a[r * cols];
        float low = row[0], high = row[0];
        for (int i = 1; i != cols; i++) {
            low = row[i] < low ? row[i] : low;
            high = fmax(row[i], high);
        }
        o[2 * r] = low;
        o[2 * r + 1] = high;
    }
}

// mb: global=(rows,) rows=70 cols=130 a=f32[rows*cols] o=out f32[rows*cols]
__kernel void running_sum(__global const float *a, __global float *o, int rows, int cols)
{
    int r = get_global_id(0);
    if (r >= rows)
        return;
    float s = 0.0f;
    for (int i = 0; i < cols; i++) {
        s += a[r * cols + i];
        o[r * cols + i] = s;
    }
}

// mb: global=(rows,) rows=70 cols=130 a=f32[rows*cols] b=f32[rows*cols] o=out f32[rows]
__kernel void dot_rows(__global const float *a, __global const float *b, __global float *o, int rows, int cols)
{
    size_t r = get_global_id(0);
    __global const float *p = a + r * cols, *q = b + r * cols;
    float s = 0;
    int left = cols;
    while (left > 0) {
        s = fma(*p, *q, s);
        p++;
        q++;
        left--;
    }
    o[r] = s;
}

// mb: global=(rows,) rows=70 cols=130 a=f32[rows*cols] o=out f32[rows]
__kernel void backwards(__global const float *a, __global float *o, int rows, int cols)
{
    int r = get_global_id(0);
    float h = 0;
    for (int i = cols - 1; i >= 0; i--)
        h = h * 0.5f + a[r * cols + i];
    o[r] = h;
}

// mb: global=(rows,) rows=70 cols=130 a=f32[rows*cols] o=out f32[rows]
__kernel void skipping(__global const float *a, __global float *o, int rows, int cols)
{
    int r = get_global_id(0);
    float s = 0, p = 1;
    for (int i = 0, j = r * cols; i < cols; i += 2, j += 2) {
        if (a[j] < 0)
            continue;
        s -= a[j];
        p *= 1.0f + 0.001f * a[j];
    }
    o[r] = s * p;
}

// mb: global=(rows,) rows=70 cols=130 a=f32[rows*cols] o=out i32[rows]
__kernel void argmax(__global const float *a, __global int *o, int cols)
{
    int r = get_global_id(0), best = 0;
    float top = a[r * cols];
    for (int c = 1; c < cols; c++)
        if (a[r * cols + c] > top) {
            top = a[r * cols + c];
            best = c;
        }
    o[r] = best;
}

// mb: global=(rows,) rows=70 cols=130 a=f32[rows*cols] o=out f32[rows]
__kernel void online_log_sum(__global const float *a, __global float *o, int cols)
{
    int r = get_global_id(0);
    float m = -INFINITY, s = 0;
    for (int c = 0; c < cols; c++) {
        float x = a[r * cols + c], next = fmax(m, x);
        s = s * exp(m - next) + exp(x - next);
        m = next;
    }
    o[r] = m + log(s);
}
