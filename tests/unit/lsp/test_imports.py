from __future__ import annotations

import subprocess
import sys

HEAVY = {"torch", "litellm", "pyopencl", "numpy", "clang"}

# What a server does from its start to the first lenses, a hover and a code action.
SERVING = """
import sys
from mb_lsp import server
from mb_targets import registry
server.make()
target = registry.load("opencl")
(kernel,) = target.find_kernels("__kernel void k(__global int *x) { x[get_global_id(0)] = 1; }", "opencl")
target.features(kernel)
target.infer_launch(kernel, None)
print(*sys.modules)
"""


def test_the_server_imports_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", SERVING], check=True, capture_output=True, text=True, timeout=120
    )
    assert HEAVY.isdisjoint(done.stdout.split())
