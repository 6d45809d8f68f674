// mb: global=(tokens,) tokens=2048 width=1024 epsilon=1e-6
// mb: activations=f32[tokens*width] scale=f32[width] normed=out f32[tokens*width]
kernel void rms_norm(global const float *activations, global const float *scale, global float *normed,
                     const int tokens, const int width, const float epsilon)
{
    const int token = get_global_id(0);
    if (token >= tokens) return;
    global const float *x = &activations[token * width];
    global float *y = &normed[token * width];
    float squares = 0.0f;
    for (int i = 0; i < width; i++)
        squares += x[i] * x[i];
    float factor = 1.0f / sqrt(squares / width + epsilon);
    for (int i = 0; i < width; i++)
        y[i] = x[i] * factor * scale[i];
}
