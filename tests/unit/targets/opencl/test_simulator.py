import struct

import numpy as np
import pytest
from small_kernels import launch, variant

from mb_targets.model import Variant
from mb_targets.opencl import runtimes, sanitize, simulator
from mb_targets.opencl.sanitize import MEMORY, RACES, UNINITIALISED

pytestmark = pytest.mark.needs("oclgrind from pip")
N = 64
INPUTS = {"a": np.arange(N, dtype=np.float32).tobytes(), "o": b"\xa5" * 4 * N}


@pytest.fixture(autouse=True)
def library_alone(monkeypatch):
    monkeypatch.setattr(runtimes, "oclgrind", runtimes.pip_oclgrind)


@pytest.mark.parametrize(
    ("name", "by", "said"),
    [
        ("oob_read", MEMORY, "Invalid read of size 4 at global memory: line 3 `o[i] = a[i + 1];`"),
        ("race_local", RACES, "Read-write data race at local memory: line 5"),
        ("uninitialised_local", UNINITIALISED, "Uninitialized value written to global memory: line 6"),
        ("tiled", RACES, ""),
    ],
)
def test_the_library_finds_what_the_command_finds(name, by, said):
    found = sanitize.run(by, variant(name), (), launch(N), INPUTS)
    assert found is not None
    assert (said in found) if said else found == ""


def test_a_kernel_that_the_library_cannot_build_was_not_checked():
    broken = Variant("__kernel void k(__global const float *a, __global float *o) { nonsense }", "k")
    assert sanitize.run(MEMORY, broken, (), launch(N), INPUTS) is None


def test_local_arguments_scalars_and_options_reach_the_library():
    source = (
        "__kernel void k(__global const float *a, __global float *o, __local float *t, uchar b, double d) {"
        " t[get_local_id(0)] = a[get_global_id(0)]; if (b == 200 && d == 0.5 && TWO == 2)"
        " o[get_global_id(0)] = t[get_local_id(0)]; else o[-1] = 0; }"
    )
    spec = launch(
        N,
        order=("a", "o", "t", "b", "d"),
        dtypes={"a": "f32", "o": "f32", "b": "u8", "d": "f64"},
        scalars={"b": 200, "d": 0.5},
        local_bytes={"t": 64},
    )
    assert sanitize.run(MEMORY, Variant(source, "k"), ["-DTWO=2"], spec, INPUTS) == ""


def test_arguments_are_read_as_they_are_written():
    lines = ["<size=8 uint hex>", "1 ffffffff", "<null>", "<size=64>", "<size=3 uchar hex>", "61 62 63"]
    assert list(simulator.arguments(lines)) == [
        (8, struct.pack("<II", 1, 0xFFFFFFFF)),
        (0, b""),
        (64, b""),
        (3, b"abc"),
    ]
