from __future__ import annotations

import numpy as np

from mb_targets.form.evaluate import evaluate
from mb_targets.form.nest import DoesNotLift, Form
from mb_targets.rvv.lift import lift

SOFTMAX = """
#include <math.h>
#include <stddef.h>

void softmax(const float *x, float *y, size_t rows, size_t cols)
{
    for (size_t r = 0; r < rows; r++) {
        const float *in = x + r * cols;
        float *out = y + r * cols;
        float top = in[0];
        for (size_t c = 1; c < cols; c++)
            if (in[c] > top)
                top = in[c];
        float sum = 0;
        for (size_t c = 0; c < cols; c++)
            sum += out[c] = expf(in[c] - top);
        for (size_t c = 0; c < cols; c++)
            out[c] /= sum;
    }
}
"""


def test_a_scalar_c_function_lifts_without_axes() -> None:
    form = lift("softmax", SOFTMAX)
    assert isinstance(form, Form), form
    assert form.axes == ()
    x = np.random.default_rng(1).standard_normal((7, 13)).astype(np.float32)
    y = evaluate(form, {"rows": 7, "cols": 13}, {"x": x, "y": np.zeros_like(x)}, ())["y"]
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y.reshape(7, 13), e / e.sum(axis=1, keepdims=True))


def test_an_assignment_inside_an_expression_is_named_as_the_reason() -> None:
    found = lift(
        "softmax",
        SOFTMAX.replace("in[c] > top", "(sum = in[c]) > top").replace("float top", "float sum, top"),
    )
    assert isinstance(found, DoesNotLift)
    assert "assigns inside an expression" in found.reason
