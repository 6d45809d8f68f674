// mb: global=(B,) B=2048 T=1024 logits=f32[B*T] mask=i32[B*T]{0..1} probs=out f32[B*T]
__kernel void masked_softmax(__global const float *logits, __global const int *mask, __global float *probs,
                             int B, int T)
{
    int b = get_global_id(0);
    if (b >= B) return;
    __global const float *in = logits + b * T;
    __global const int *keep = mask + b * T;
    __global float *out = probs + b * T;

    float top = -1e30f;
    for (int t = 0; t < T; ++t)
        top = fmax(top, keep[t] ? in[t] : -1e30f);
    float total = 0.0f;
    for (int t = 0; t < T; ++t)
        total += keep[t] ? exp(in[t] - top) : 0.0f;
    for (int t = 0; t < T; ++t)
        out[t] = keep[t] ? exp(in[t] - top) / total : 0.0f;
}
