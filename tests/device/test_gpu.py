"""The worker on a GPU: no guard pages there, but fences around buffers, and the device's own clock."""

from pathlib import Path

import numpy as np
import pytest
from small_kernels import launch, variant

from mb_agent.worker import WorkerProcess, share
from mb_targets.errors import BuildError, RunError
from mb_targets.model import Variant

pytestmark = pytest.mark.needs("gpu")


@pytest.fixture(scope="module")
def worker():
    with WorkerProcess("opencl", "gpu") as process:
        yield process


def floats(n):
    return np.arange(1, n + 1, dtype=np.float32)


def run(worker, name, n, local=None, **changes):
    handle = worker.build(name if isinstance(name, Variant) else variant(name), [], Path())
    given = share({"a": floats(n), "o": np.full(n, 0x7FA5A5A5, np.uint32)})
    return worker.run(handle, launch(n, local, **changes), given, limit=60.0)


def test_device_is_a_gpu(worker):
    device = worker.device()
    assert device.kind == "gpu"
    assert device.key.startswith("gpu-")


@pytest.mark.parametrize("n", [1, 37, 4096, 1_000_003])
def test_outputs_come_back_exactly(worker, n):
    assert np.array_equal(np.frombuffer(run(worker, "good", n).outputs["o"], np.float32), floats(n) * 2)


@pytest.mark.parametrize(
    ("name", "side"), [("oob_write", "past the end"), ("under_write", "before the start")]
)
@pytest.mark.parametrize("n", [37, 4096])
def test_write_outside_a_buffer_is_named(worker, name, side, n):
    with pytest.raises(RunError, match=f"{side} of o"):
        run(worker, name, n)


def test_written_input_is_reported(worker):
    assert run(worker, "writes_input", 64).changed_inputs == ("a",)


def test_local_memory_and_barriers_work(worker):
    outputs = np.frombuffer(run(worker, "tiled", 64, 16).outputs["o"], np.float32)
    assert outputs[:16].tolist() == floats(16)[::-1].tolist()


def test_empty_launches_and_buffers_are_accepted(worker):
    assert run(worker, "good", 0).outputs == {"o": b""}


def test_build_error_names_the_line(worker):
    with pytest.raises(BuildError, match="line 3"):
        run(worker, Variant(variant("good").source.replace("i < n", "i < m"), "k"), 4)


def test_refused_work_group_size_is_a_run_error(worker):
    with pytest.raises(RunError, match="work-group size"):
        run(worker, "good", 1 << 16, 1 << 16)


def test_timed_launches_give_event_times(worker):
    n = 1 << 24
    handle = worker.build(variant("good"), [], Path())
    given = share({"a": floats(n), "o": floats(n)})
    for launches in (1, 20, 20):
        worker.prepare(handle, launch(n, 256), given, launches)
        sample = worker.time(handle)
        assert sample.launches == launches
        assert sample.event_ns > 0
