"""CUDA C: so far its kernels lift to the form; no target is registered yet."""
