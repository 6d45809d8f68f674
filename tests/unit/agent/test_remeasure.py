"""A claim's record is enough to measure it again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import made_events as made
import msgspec
import pytest
from lifted import from_text

from mb_agent.errors import JobRefused
from mb_agent.evidence import Evidence, write
from mb_agent.remeasure import remeasure
from mb_agent.worker import WorkerProcess
from mb_targets.model import Variant
from mb_targets.outcome import Measurement

SOURCE = """// mb: global=(n,) n=65536 x=f32[n] y=out f32[n]
__kernel void twice(__global const float *x, __global float *y, const int n)
{
    int i = get_global_id(0);
    if (i < n)
        y[i] = 2.0f * x[i];
}
"""

pytestmark = pytest.mark.needs("pocl")


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    kernel, launch = from_text(SOURCE)
    with WorkerProcess("opencl", "pocl") as side:
        device = side.device()
    return Evidence(
        kernel=kernel,
        launch=launch,
        variant=Variant(SOURCE.replace("2.0f * x[i]", "x[i] + x[i]"), "twice"),
        verdict=made.PASSED,
        measurement=made.measurement(1.1),
        device=device,
        state=made.STATE,
        precision="same",
        provenance=made.tried("vector", 1.1).outcome.provenance,
        seed=1,
        final_seed=2,
        home={"n": 65536.0},
        small={"n": 37.0},
        sizes=(),
        cpu_ns=(),
        event_ns=(),
        launches=(1, 1),
        control=None,
        minimum_gain=1.03,
    )


def test_it_is_measured_on_the_records_device(evidence: Evidence, tmp_path: Path) -> None:
    found = remeasure(evidence, tmp_path, "pocl")
    assert found.device == evidence.device.key
    assert found.samples > 0


def test_the_process_prints_the_measurement(evidence: Evidence, tmp_path: Path) -> None:
    place = write(tmp_path, evidence)
    command = [sys.executable, "-P", "-m", "mb_agent.remeasure", str(place), str(tmp_path), "pocl"]
    done = subprocess.run(command, capture_output=True, timeout=120, check=True)
    assert msgspec.json.decode(done.stdout, type=Measurement).device == evidence.device.key


def test_another_device_than_the_records_is_refused(evidence: Evidence, tmp_path: Path) -> None:
    elsewhere = msgspec.structs.replace(evidence, device=made.DEVICE)
    with pytest.raises(JobRefused, match=made.DEVICE.key):
        remeasure(elsewhere, tmp_path, "pocl")


def test_a_torn_record_is_one_sentence(tmp_path: Path) -> None:
    place = tmp_path / "evidence.json"
    place.write_text('{"kernel": ')
    command = [sys.executable, "-P", "-m", "mb_agent.remeasure", str(place), str(tmp_path), ""]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False, text=True)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
