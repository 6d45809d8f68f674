"""Brighten an image with OpenCL. The kernel stands in this file, and so does its launch.

    modelblaster optimize examples/host_py/brighten.py
    PYOPENCL_CTX=intel python examples/host_py/brighten.py

A variant that needs another NDRange edits the call below together with the kernel.
"""

import numpy as np
import pyopencl as cl

KERNEL = r"""
// mb: global=(count,) count=2097152 gain=1.2 gamma=0.8 pixels=f32[count]{0..1} result=out f32[count]
__kernel void brighten(__global const float *pixels, __global float *result,
                       const float gain, const float gamma, const int count)
{
    int i = get_global_id(0);
    if (i < count)
        result[i] = fmin(1.0f, gain * pow(pixels[i], gamma));
}
"""


def main() -> None:
    """Brighten random pixels, and compare with numpy."""
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    program = cl.Program(context, KERNEL).build()

    count = 1 << 21
    pixels = np.random.default_rng(1).random(count, dtype=np.float32)
    result = np.empty_like(pixels)
    flags = cl.mem_flags
    pixels_buffer = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=pixels)
    result_buffer = cl.Buffer(context, flags.WRITE_ONLY, result.nbytes)

    program.brighten(
        queue, (count,), None, pixels_buffer, result_buffer, np.float32(1.2), np.float32(0.8), np.int32(count)
    )
    cl.enqueue_copy(queue, result, result_buffer)

    expected = np.minimum(1.0, 1.2 * pixels.astype(np.float64) ** 0.8)
    print("largest error", np.abs(result - expected).max())


if __name__ == "__main__":
    main()
