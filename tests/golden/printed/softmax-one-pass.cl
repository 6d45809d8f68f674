// rewrite(one_pass)
__kernel void softmax(__global const float *src, __global float *dst, const int rows, const int cols)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    float largest = -INFINITY;
    float sum = 0.0f;
    for (int i = 0; i < cols; ++i) {
        float x = src[row * cols + i];
        if (x > largest) {
            sum = sum * exp(largest - x);
            largest = x;
        }
        sum += exp(x - largest);
    }
    for (int i = 0; i < cols; ++i) {
        dst[row * cols + i] = exp(src[row * cols + i] - largest) / sum;
    }
}
