import re
from pathlib import Path

import pytest
from small_kernels import variant

from mb_agent.worker import WorkerProcess

RUNTIMES = [pytest.param(r, marks=pytest.mark.needs(r)) for r in ("pocl", "intel")]


@pytest.fixture(scope="module", params=RUNTIMES)
def device(request):
    with WorkerProcess("opencl", request.param) as process:
        return process.device()


def test_key_names_kind_processor_and_runtime(device):
    assert re.fullmatch(r"cpu-[a-z0-9-]+-(pocl\d+\.\d+|intel\d{4})", device.key)


def test_cpu_device_has_cores_and_vectors(device):
    assert device.kind == "cpu"
    assert device.compute_units >= 1
    assert device.vector_bits in (128, 256, 512)


def test_features_say_language_and_double_precision(device):
    assert "fp64" in device.features
    assert any(f.startswith("opencl-") for f in device.features)


@pytest.mark.needs("pocl")
def test_toolchain_of_pocl_records_the_work_group_method():
    with WorkerProcess("opencl", "pocl") as process:
        assert "POCL_WORK_GROUP_METHOD=loopvec" in process.device().toolchain


@pytest.mark.needs("pocl")
@pytest.mark.needs("intel")
def test_named_runtime_is_the_only_one_loaded():
    with WorkerProcess("opencl", "pocl") as process:
        process.build(variant("good"), [], Path())
        maps = Path(f"/proc/{process.pid}/maps").read_text()
    assert "libpocl" in maps
    assert "libintelocl" not in maps


@pytest.mark.needs("pocl")
def test_device_is_found_by_a_part_of_its_name():
    with WorkerProcess("opencl", "pthread") as process:
        assert "pocl" in process.device().key


@pytest.mark.needs("pocl")
def test_build_leaves_nothing_outside_the_private_folder(tmp_path):
    with WorkerProcess("opencl", "pocl") as process:
        process.build(variant("good"), [], tmp_path)
        folder = Path(f"/proc/{process.pid}/cwd").readlink()
        assert list(folder.rglob("pocl-cache"))
    assert list(tmp_path.iterdir()) == []
