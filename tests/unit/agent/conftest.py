import pytest

from mb_targets.model import Device, State


@pytest.fixture
def device():
    return Device(
        key="cpu-test",
        name="Test CPU",
        kind="cpu",
        vendor="none",
        driver="1",
        toolchain="1",
        compute_units=2,
        vector_bits=256,
        local_bytes=32768,
        max_work_group=1024,
    )


@pytest.fixture
def state():
    return State("map", ("unit",), "f32", 10, 0, "memory", "opencl", "cpu-test")
