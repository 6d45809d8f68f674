#pragma OPENCL EXTENSION cl_khr_fp64 : enable

// mb: global=(n,) n=1000 a=f32[n] b=f32[n] c=out f32[n]
__kernel void inline_ids(__global const float *a, __global const float *b, __global float *c)
{
    c[get_global_id(0)] = a[get_global_id(0)] + b[get_global_id(0)];
}

// mb: global=((n+63)//64*64,) local=(64,) n=1000 alpha=1.5 x=f32[n] y=inout f32[n]
__kernel void group_times_size(float alpha, __global const float *x, __global float *y, uint n)
{
    size_t i = get_local_id(0) + get_group_id(0) * get_local_size(0);
    if (!(i < n))
        return;
    y[i] += alpha * x[i];
}

// mb: global=(256,) n=1000 a=f32[n] o=out f32[n]
__kernel void grid_stride(__global const float *a, __global float *o, int n)
{
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        o[i] = 2.0f * a[i] - 1.0f;
}

// mb: global=(256,) n=1000 a=f32[n] o=out f32[n]
__kernel void grid_stride_while(__global const float *a, __global float *o, int n)
{
    int i = get_global_id(0);
    const int step = get_global_size(0);
    while (i < n) {
        o[i] = sqrt(fabs(a[i]));
        i += step;
    }
}

// mb: global=(n,) n=1000 a=f64[n] o=out f64[n]
__kernel void gelu_double(__global const double *a, __global double *o)
{
    int i = get_global_id(0);
    double x = a[i];
    o[i] = 0.5 * x * (1.0 + tanh(0.7978845608 * (x + 0.044715 * pow(x, 3.0))));
}

// mb: global=(n,) n=1000 a=i32[n]{-1000..1000} b=u32[n] o=out i64[n]
__kernel void whole_numbers(__global const int *a, __global const uint *b, __global long *o)
{
    const int i = get_global_id(0);
    long sum = (long)a[i] * b[i];
    sum -= a[i] / 3;
    sum ^= b[i] >> 3;
    o[i] = (a[i] % 7 == 0) ? sum << 2 : ~sum;
}

// mb: global=(n,) n=1000 a=f32[n] o=out f32[n] low=0.1 high=0.5
kernel void branches(global const float *a, global float *o, const float low, const float high, const int n)
{
    int gid = get_global_id(0);
    if (gid < n) {
        float v = a[gid], r;
        if (v < low)
            r = low;
        else if (v > high)
            r = high;
        else {
            float s = v * v;
            r = s;
        }
        o[gid] = r;
    }
}

static float square(float v) { return v * v; }

inline float soft(float v, float k)
{
    float d = 1.0f + fabs(v) * k;
    if (d > 3.0f)
        return v / 3.0f;
    return v / d;
}

// mb: global=(n,) n=1000 a=f32[n] o=out f32[n]
__kernel void helpers(__global const float *a, __global float *o)
{
    size_t i = get_global_id(0);
    o[i] = square(a[i] + 1) + soft(a[i], 0.5f);
}

#define IDX(r, c) ((r) * COLS + (c))
#define COLS 40
#define REAL float
#define LOAD(p, i) p[i]
#ifdef NEVER
#error not this
#elif COLS > 30 && !defined(OTHER)
#define SCALE 2.5f
#else
#define SCALE 1.0f
#endif

// mb: global=(40,rows) rows=25 a=f32[rows*40] o=out f32[rows*40]
__kernel void with_macros(__global const REAL *a, __global REAL *o)
{
    const int c = get_global_id(0);
    const int r = get_global_id(1);
    o[IDX(r, c)] = SCALE * LOAD(a, IDX(r, c)) / COLS;
}

// mb: global=(n,) n=1000 idx=i32[n]{0..n-1} x=f32[n] o=out f32[n]
__kernel void gather(__global const float *x, __global const int *idx, __global float *o)
{
    int i = get_global_id(0);
    o[i] = x[idx[i]];
}

// mb: global=(n,) n=1000 a=f32[n] o=out f32[n]
__kernel void chained(__global const float *a, __global float *o)
{
    int i = get_global_id(0);
    float x, y;
    x = y = a[i];
    y += 1, x *= 2;
    o[i] = select(x, y, x > 0.0f) + mad(x, y, 1.0f);
}

typedef float real;
typedef unsigned int index_t;

// mb: global=(n,) n=100 a=f32[n] o=out f32[n]
kernel void typedefs(global const real *restrict a, global real *restrict o, const index_t n)
{
    const index_t i = get_global_id(0);
    if (i >= n)
        return;
    real v = a[i];
#pragma unroll
    for (index_t k = 0u; k < 4u; k++)
        v = v * 0.5f + 1.f;
    o[i] = v;
}
