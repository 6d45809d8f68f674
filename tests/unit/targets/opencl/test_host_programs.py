"""A host program that was edited together with its kernel still computes what it did."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mb_targets.model import LaunchChange, LaunchSpec, NotApplicable, Variant
from mb_targets.opencl.detect import find_kernels
from mb_targets.opencl.hunks import apply
from mb_targets.opencl.launch import infer_launch
from mb_targets.opencl.patch import patch

ROOT = Path(__file__).parents[4]
CHUNKED = """{
    for (int i = get_global_id(0) * 8; i < min(count, (int)get_global_id(0) * 8 + 8); ++i)
        result[i] = fmin(1.0f, gain * pow(pixels[i], gamma));
}"""


def run(program: Path) -> str:
    env = {**os.environ, "OCL_ICD_VENDORS": "/etc/OpenCL/vendors", "PYOPENCL_NO_CACHE": "1"}
    command = [sys.executable, program.name]
    done = subprocess.run(
        command, cwd=program.parent, env=env, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


@pytest.mark.needs("pocl")
def test_an_edited_pyopencl_program_runs_with_the_new_sizes(tmp_path: Path) -> None:
    program = tmp_path / "brighten.py"
    shutil.copy(ROOT / "examples/host_py/brighten.py", program)
    text = program.read_text()
    kernel = find_kernels(text, "python")[0]
    launch = infer_launch(kernel, program)
    assert isinstance(launch, LaunchSpec)
    body = kernel.text.index("{")
    source = kernel.source[: kernel.start + body] + CHUNKED + kernel.source[kernel.end :]
    variant = Variant(source, kernel.name, (), LaunchChange(("(G0 + 7) // 8",), None))
    made = patch(kernel, launch, variant, program, text)
    assert not isinstance(made, NotApplicable), made
    program.write_text(apply(text, list(made[0].edits)))
    assert "queue, ((count + 7) // 8,), None" in program.read_text()
    error = re.search(r"largest error (\S+)", run(program))
    assert error
    assert float(error[1]) < 1e-6
