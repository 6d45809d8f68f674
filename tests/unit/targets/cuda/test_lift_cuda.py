from __future__ import annotations

import numpy as np

from mb_targets.cuda.lift import lift
from mb_targets.form.evaluate import evaluate
from mb_targets.form.nest import DoesNotLift, Form
from mb_targets.model import LaunchSpec

MATMUL = """
// C = A * B
__global__ void matmul(const float *__restrict__ A, const float *__restrict__ B, float *C, int n)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = threadIdx.y + blockDim.y * blockIdx.y;
    if (row < n && col < n) {
        float sum = 0.0f;
        for (int k = 0; k < n; ++k)
            sum += A[row * n + k] * B[k * n + col];
        C[row * n + col] = sum;
    }
}
"""

BLOCK_SUM = """
#define BLOCK 128
__device__ float positive(float v) { return fmaxf(v, 0.0f); }

__global__ void block_sum(const float *x, float *partial, int n)
{
    __shared__ float tile[BLOCK];
    unsigned int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    tile[t] = i < n ? positive(x[i]) : 0.0f;
    __syncthreads();
    for (int s = BLOCK / 2; s > 0; s >>= 1) {
        if (t < s)
            tile[t] += tile[t + s];
        __syncthreads();
    }
    if (t == 0)
        partial[blockIdx.x] = tile[0];
}
"""


def test_a_cuda_matmul_lifts_to_the_form_of_an_opencl_one() -> None:
    form = lift("matmul", MATMUL)
    assert isinstance(form, Form)
    assert [(a.name, a.level, a.guarded) for a in form.axes] == [("col", "item", True), ("row", "item", True)]
    random = np.random.default_rng(1)
    a, b = random.standard_normal((2, 19, 19)).astype(np.float32)
    c = evaluate(form, {"n": 19}, {"A": a, "B": b, "C": np.zeros_like(a)}, (32, 32))["C"]
    np.testing.assert_allclose(c.reshape(19, 19), a.astype(np.float64) @ b)


def test_a_cuda_block_sum_lifts_to_one_fold_a_block() -> None:
    launch = LaunchSpec((), (), ("384",), ("128",))
    form = lift("block_sum", BLOCK_SUM, launch)
    assert isinstance(form, Form)
    assert [a.level for a in form.axes] == ["group"]
    x = np.random.default_rng(2).standard_normal(300).astype(np.float32)
    got = evaluate(form, {"n": 300}, {"x": x, "partial": np.zeros(3, np.float32)}, (384,), (128,))["partial"]
    padded = np.pad(np.maximum(x, 0).astype(np.float64), (0, 84))
    np.testing.assert_allclose(got, padded.reshape(3, 128).sum(axis=1))


def test_a_warp_shuffle_is_named_as_the_reason() -> None:
    source = MATMUL.replace("sum += A[row * n + k]", "sum += __shfl_down_sync(~0u, sum, 1) * A[row * n + k]")
    found = lift("matmul", source)
    assert isinstance(found, DoesNotLift)
    assert "__shfl_down_sync" in found.reason
