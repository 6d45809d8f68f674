"""Extents that inference cannot tell are found by running the kernel on memory that shows what it touches."""

from __future__ import annotations

from pathlib import Path

import pytest

from mb_agent.worker import WorkerProcess
from mb_targets.expression import evaluate
from mb_targets.model import Kernel, LaunchSpec
from mb_targets.opencl.detect import find_kernels
from mb_targets.opencl.launch import infer_launch

RUNTIMES = [pytest.param(r, marks=pytest.mark.needs(r)) for r in ("pocl", "intel")]
HIDDEN = """
int column(int i) { return i; }
void put(global float *where, float value) { *where = value; }
kernel void hidden(global const float *a, global float *b, global const float *few, int w, int h)
{
    int x = get_global_id(0), y = get_global_id(1);
    if (x < w && y < h) {
        float s = few[column(5)] + a[column(y * w + x)];
        put(b + x * h + y, s);
    }
}
"""
ENDLESS = """
int next(int i);
int next(int i) { return i + 4096; }
kernel void endless(global float *a, int n)
{
    for (int i = get_global_id(0), k = 0; k < 100000; i = next(i), k++) a[i] = 1.0f;
}
"""


@pytest.fixture(scope="module", params=RUNTIMES)
def worker(request):
    with WorkerProcess("opencl", request.param) as process:
        yield process


def open_launch(source: str) -> tuple[Kernel, LaunchSpec]:
    kernel = find_kernels(source, "opencl")[0]
    launch = infer_launch(kernel, None)
    assert isinstance(launch, LaunchSpec)
    return kernel, launch


def test_lengths_are_found_as_expressions_over_the_sizes(worker):
    kernel, launch = open_launch(HIDDEN)
    found = worker.probe(kernel, launch, Path())
    sizes = {"w": 300, "h": 200}
    assert [evaluate(a.extent, sizes) for a in found.arguments if a.name in ("a", "b")] == [60000, 60000]
    assert {a.origin for a in found.arguments if a.name in ("a", "b")} == {"probed"}


def test_a_small_buffer_gets_a_length_that_covers_what_is_touched(worker):
    kernel, launch = open_launch(HIDDEN)
    found = worker.probe(kernel, launch, Path())
    assert 6 <= evaluate(next(a.extent for a in found.arguments if a.name == "few"), {}) <= 1024


def test_a_launch_that_says_everything_stays_as_it_is(worker):
    kernel, launch = open_launch("kernel void k(global float *a) { a[get_global_id(0)] = 1; }")
    assert worker.probe(kernel, launch, Path()) == launch


@pytest.mark.needs("pocl")
def test_a_kernel_that_reaches_past_any_buffer_is_refused_with_the_line_to_write():
    kernel, launch = open_launch(ENDLESS)
    with WorkerProcess("opencl", "pocl") as process, pytest.raises(Exception, match=r"mb: a=|killed by|SIG"):
        process.probe(kernel, launch, Path())


@pytest.mark.needs("pocl")
def test_a_kernel_that_does_not_compile_is_a_build_error():
    kernel, launch = open_launch(HIDDEN.replace("return i;", "return undefined_name;"))
    with WorkerProcess("opencl", "pocl") as process, pytest.raises(Exception, match="undefined_name"):
        process.probe(kernel, launch, Path())
