// group(64)
// ('G0 * 64',) (64,)
__kernel void softmax(__global const float *src, __global float *dst, const int rows, const int cols)
{
    const int row = get_group_id(0);
    if (row >= rows)
        return;
    __local float fold[64];
    int lid = get_local_id(0);
    float largest = -INFINITY;
    float largest_own = largest;
    for (int i = lid; i < cols; i += 64) {
        largest_own = fmax(largest_own, src[row * cols + i]);
    }
    fold[lid] = largest_own;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_way = 32; half_way > 0; half_way /= 2) {
        if (lid < half_way)
            fold[lid] = fmax(fold[lid], fold[lid + half_way]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    largest = fmax(largest, fold[0]);
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
    float sum_own = 0.0f;
    for (int i = lid; i < cols; i += 64) {
        sum_own += exp(src[row * cols + i] - largest);
    }
    fold[lid] = sum_own;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_way = 32; half_way > 0; half_way /= 2) {
        if (lid < half_way)
            fold[lid] = fold[lid] + fold[lid + half_way];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    sum += fold[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = lid; i < cols; i += 64) {
        dst[row * cols + i] = exp(src[row * cols + i] - largest) / sum;
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
}
