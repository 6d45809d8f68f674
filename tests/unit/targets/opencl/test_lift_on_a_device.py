"""The lifted form computes what the kernel computes on a device."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from lifted import ROOT, kernels, make_inputs

from mb_agent.inputs import dtype_of
from mb_agent.worker import WorkerProcess, share
from mb_targets.concrete import concretize, sizes_to_try, work
from mb_targets.model import Kernel, LaunchSpec, Variant
from mb_targets.opencl.reference import reference

FILES = [
    *sorted((ROOT / "examples").glob("*.cl")),
    *sorted((ROOT / "tests/data/relatives").glob("*.cl")),
    *sorted((ROOT / "tests/data/lift").glob("*.cl")),
]
KERNELS = [pytest.param(k, spec, id=k.name) for path in FILES for k, spec in kernels(path)]
_LARGEST_WORK = 1 << 17


@pytest.fixture(scope="module")
def side() -> Iterator[WorkerProcess]:
    with WorkerProcess("opencl", "pocl") as worker:
        yield worker


@pytest.mark.needs("pocl")
@pytest.mark.parametrize(("kernel", "spec"), KERNELS)
def test_lifted_form_computes_what_the_device_does(
    kernel: Kernel, spec: LaunchSpec, side: WorkerProcess, tmp_path: Path
) -> None:
    handle = side.build(Variant(kernel.source, kernel.name), spec.options, tmp_path)
    tried = [s for s in sizes_to_try(spec) if work(spec, s) <= _LARGEST_WORK][:3]
    for sizes in tried:
        launch = concretize(kernel, spec, sizes, None)
        inputs = make_inputs(spec, launch)
        expected = reference(kernel, spec, launch, inputs)
        assert expected is not None
        result = side.run(handle, launch, share(inputs))
        for name, values in expected.items():
            got = np.frombuffer(result.outputs[name], dtype_of(launch, name))
            if got.dtype.kind == "f":
                np.testing.assert_allclose(got, values, rtol=2e-4, atol=2e-5, err_msg=f"{name} {sizes}")
            else:
                np.testing.assert_array_equal(got, values.astype(got.dtype), err_msg=f"{name} {sizes}")
    side.close(handle)
    assert tried
