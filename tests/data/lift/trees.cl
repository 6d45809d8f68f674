#define GROUP 64

// mb: global=((n+63)//64*64,) local=(64,) n=1000 a=f32[n] o=out f32[(n+63)//64]
__kernel void modulo_tree(__global const float *a, __global float *o, int n)
{
    __local float t[GROUP];
    int l = get_local_id(0), i = get_global_id(0);
    t[l] = i < n ? a[i] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = 1; s < GROUP; s *= 2) {
        if (l % (2 * s) == 0)
            t[l] += t[l + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0)
        o[get_group_id(0)] = t[0];
}

// mb: global=((n+63)//64*64,) local=(64,) n=1000 a=f32[n] o=out f32[(n+63)//64] t=f32[64]
__kernel void strided_places(__global const float *a, __global float *o, __local float *t, uint n)
{
    uint l = get_local_id(0), i = get_global_id(0);
    if (i < n)
        t[l] = a[i];
    else
        t[l] = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint s = 1; s < get_local_size(0); s <<= 1) {
        uint place = 2 * s * l;
        if (place < get_local_size(0))
            t[place] *= t[place + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (!l)
        o[get_group_id(0)] = t[0];
}

// mb: global=((n+63)//64*64,) local=(64,) n=1000 a=i32[n]{-99..99} o=out i32[(n+63)//64]
__kernel void halving_min(__global const int *a, __global int *o, int n)
{
    __local int best[64];
    const int me = get_local_id(0);
    const int at = get_group_id(0) * 64 + me;
    best[me] = INT_MAX;
    if (at < n)
        best[me] = a[at];
    barrier(CLK_LOCAL_MEM_FENCE);
    int half_size = get_local_size(0) / 2;
    while (half_size > 0) {
        if (me < half_size && best[me + half_size] < best[me])
            best[me] = best[me + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
        half_size /= 2;
    }
    if (me == 0)
        o[get_group_id(0)] = best[0];
}

// mb: global=(256,) local=(64,) n=1000 a=f32[n] o=out f32[4]
__kernel void grid_stride_max(__global const float *a, __global float *o, int n)
{
    __local float t[64];
    int l = get_local_id(0);
    float m = -INFINITY;
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        m = fmax(m, a[i]);
    t[l] = m;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = 32; s > 0; s >>= 1) {
        if (l < s)
            t[l] = t[l] > t[l + s] ? t[l] : t[l + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0)
        o[get_group_id(0)] = t[0];
}

// mb: global=(rows*64,) local=(64,) rows=20 cols=150 a=f32[rows*cols] o=out f32[rows*cols]
__kernel void softmax_groups(__global const float *a, __global float *o, int cols)
{
    __local float t[64];
    int l = get_local_id(0), r = get_group_id(0);
    a += r * cols;
    o += r * cols;
    float m = -INFINITY;
    for (int i = l; i < cols; i += 64)
        m = fmax(m, a[i]);
    t[l] = m;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = 32; s > 0; s >>= 1) {
        if (l < s)
            t[l] = fmax(t[l], t[l + s]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    m = t[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    float z = 0;
    for (int i = l; i < cols; i += 64) {
        float e = exp(a[i] - m);
        o[i] = e;
        z += e;
    }
    t[l] = z;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = 32; s > 0; s >>= 1) {
        if (l < s)
            t[l] += t[l + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    z = 1 / t[0];
    for (int i = l; i < cols; i += 64)
        o[i] *= z;
}

// mb: global=(rows*32,) local=(32,) rows=20 cols=150 eps=1e-5
// mb: a=f32[rows*cols] g=f32[cols] b=f32[cols] o=out f32[rows*cols]
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void layer_norm_groups(__global const float *a, __global const float *g, __global const float *b,
                       __global float *o, const int cols, const float eps)
{
    const int row = get_group_id(0);
    const int lane = get_local_id(0);
    __local float sums[32], squares[32];
    __local float mean, scale;
    float s = 0, q = 0;
    for (int c = lane; c < cols; c += get_local_size(0)) {
        float v = a[row * cols + c];
        s += v;
        q += v * v;
    }
    sums[lane] = s;
    squares[lane] = q;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int d = 16; d > 0; d /= 2) {
        if (lane < d) {
            sums[lane] += sums[lane + d];
            squares[lane] += squares[lane + d];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0) {
        mean = sums[0] / cols;
        scale = rsqrt(squares[0] / cols - mean * mean + eps);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int c = lane; c < cols; c += get_local_size(0))
        o[row * cols + c] = (a[row * cols + c] - mean) * scale * g[c] + b[c];
}

// mb: global=(n,) local=(32,) n=960 n%32 a=f32[n] o=out f32[n]
__kernel void softmax_of_groups(__global const float *a, __global float *o)
{
    __local float t[32];
    int i = get_global_id(0), l = get_local_id(0);
    float x = a[i];
    t[l] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = 16; s > 0; s /= 2) {
        if (l < s) {
            float other = t[l + s];
            if (other > t[l])
                t[l] = other;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    float e = exp(x - t[0]);
    barrier(CLK_LOCAL_MEM_FENCE);
    t[l] = e;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int s = 16; s > 0; s /= 2) {
        if (l < s)
            t[l] += t[l + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    o[i] = e / t[0];
}

// mb: global=(256,) local=(32,) n=1000 a=f32[n] o=out f32[8]
__kernel void one_item_adds(__global const float *a, __global float *o, int n)
{
    __local float t[32];
    const int lid = get_local_id(0), group = get_group_id(0);
    t[lid] = 0;
    for (int k = get_global_id(0); k < n; k += get_global_size(0))
        t[lid] += a[k] * a[k];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid == 0) {
        float s = 0;
        for (int j = 0; j < 32; j++)
            s += t[j];
        o[group] = s;
    }
}

// mb: global=(rows*16,) local=(16,) rows=20 cols=50 a=f32[rows*cols] o=out f32[rows*cols]
__kernel void rows_without_trees(__global const float *a, __global float *o, int cols)
{
    int r = get_group_id(0);
    for (int c = get_local_id(0); c < cols; c += get_local_size(0))
        o[r * cols + c] = a[r * cols + c] + r;
}

// mb: global=(n,) local=(64,) n=640 n%64 a=f32[2*n] o=out f32[n//64]
__kernel void first_add_then_tree(__global const float *a, __global float *o)
{
    __local float t[64];
    unsigned int tid = get_local_id(0);
    unsigned int i = get_group_id(0) * (get_local_size(0) * 2) + tid;
    t[tid] = a[i] + a[i + get_local_size(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (tid < 32) t[tid] += t[tid + 32];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (tid < 16) t[tid] += t[tid + 16];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (unsigned int s = 8; s > 0; s >>= 1) {
        if (tid < s) t[tid] += t[tid + s];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (tid == 0) o[get_group_id(0)] = t[0];
}
