"""The worker half: one OpenCL device, opened so that only the chosen runtime is loaded.

``pyopencl`` is imported only after the environment is set, which is why the program's part is a module of its
own.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mb_targets.errors import TargetUnavailable
from mb_targets.model import Device, Kernel, LaunchSpec, Variant
from mb_targets.opencl import runtimes, sanitize
from mb_targets.protocol import GUARD_PAGES

if TYPE_CHECKING:
    import pyopencl as cl

    from mb_targets.opencl.program import OpenCLProgram
    from mb_targets.protocol import Data, Launch

_FEATURES = ("fp16", "fp64", "int64_base_atomics", "integer_dot_product", "subgroups")
_ZEN = {23: "zen2", 25: "zen3", 26: "zen5"}
_ZEN4_MODELS = (*range(0x10, 0x20), *range(0x60, 0x80), *range(0xA0, 0xB0))
_NOISE = re.compile(
    r"\((r|tm|c)\)|@.*|\b(cpu|gpu|processor|corporation|\d+-core|nvidia|amd|intel|geforce)\b", re.I
)


class OpenCLWorker:
    """An OpenCL device in this process.

    Args:
        choice: The user's choice: a runtime's name, ``gpu``, ``cpu``, a part of the device's name, or empty
        for the
            best one.

    Raises:
        TargetUnavailable: pyopencl or a fitting device is missing.
    """

    def __init__(self, choice: str = "") -> None:
        chosen, text = runtimes.pick(choice)
        self._folder = Path(tempfile.mkdtemp(prefix="opencl-"))
        os.environ.update(runtimes.environment(chosen, self._folder))
        try:
            import pyopencl as cl

            from mb_targets.opencl.fault import FaultReporter
            from mb_targets.opencl.program import Station
            from mb_targets.opencl.timed import Pool
        except ImportError as error:
            raise TargetUnavailable(
                f"pyopencl is not installed ({error}): pip install 'modelblaster[opencl]'"
            ) from error
        os.environ["PYOPENCL_HOME"] = str(
            self._folder
        )  # else the loader adds the PoCL that pip may have installed
        self._device = _open(text, choice)
        context = cl.Context([self._device])
        queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        self._station = Station(queue, Pool(context), FaultReporter())

    def device(self) -> Device:
        """Describe the device."""
        return describe(self._device)

    def build(self, variant: Variant, options: Sequence[str], folder: Path) -> OpenCLProgram:
        """Build a variant; includes are looked up in ``folder``.

        Raises:
            BuildError: The compiler refused it, or it holds no kernel of that name.
        """
        from mb_targets.opencl.program import build

        return build(self._station, variant, options, folder)

    def probe(self, kernel: Kernel, launch: LaunchSpec, folder: Path) -> LaunchSpec:
        """Fill in the extents that a launch leaves as ``?``, by a run that shows what it touches."""
        from mb_targets.opencl.probe import probe

        return probe(self._station.queue, kernel, launch, folder)

    def sanitize(
        self, name: str, variant: Variant, options: Sequence[str], launch: Launch, inputs: Mapping[str, Data]
    ) -> str | None:
        """Run an Oclgrind check in a process of its own."""
        return sanitize.run(name, variant, options, launch, inputs)


def describe(device: cl.Device) -> Device:
    """Say what is known of a device."""
    import pyopencl as cl

    platform = device.platform
    on_cpu = is_cpu(device)
    driver = re.sub(r"\s+", " ", device.driver_version).strip()
    toolchain = re.sub(r"\s+", " ", f"{platform.version}; {device.opencl_c_version}").strip()
    if "pocl" in platform.version.lower():
        toolchain += f"; POCL_WORK_GROUP_METHOD={os.environ.get('POCL_WORK_GROUP_METHOD', 'unset')}"
    kind = "cpu" if on_cpu else "gpu" if device.type & cl.device_type.GPU else "accelerator"
    return Device(
        key=_key(device, on_cpu),
        name=device.name.strip(),
        kind=kind,  # type: ignore[arg-type]  # mypy widens the conditional to str
        vendor=platform.vendor.strip(),
        driver=driver,
        toolchain=toolchain,
        compute_units=device.max_compute_units,
        vector_bits=32 * device.native_vector_width_float if on_cpu else 0,
        local_bytes=device.local_mem_size,
        max_work_group=device.max_work_group_size,
        features=_features(device),
    )


def is_cpu(device: cl.Device) -> bool:
    """Tell whether a device is this machine's processor, so that its buffers can be host memory."""
    import pyopencl as cl

    return bool(device.type & cl.device_type.CPU)


def _open(text: str, choice: str) -> cl.Device:
    import pyopencl as cl

    try:
        devices = [d for p in cl.get_platforms() for d in p.get_devices()]
    except (cl.Error, RuntimeError) as error:
        raise TargetUnavailable(
            f"the OpenCL runtime does not start ({error}): {runtimes.INSTALL_CPU}"
        ) from error
    devices.sort(key=lambda d: not d.type & cl.device_type.GPU)
    if choice.strip().lower() == "gpu":
        devices = [d for d in devices if d.type & cl.device_type.GPU]
    fitting = [d for d in devices if text in f"{d.platform.name} {d.platform.version} {d.name}".lower()]
    if not fitting:
        have = ", ".join(f"{d.platform.name} / {d.name.strip()}" for d in devices) or "none"
        raise TargetUnavailable(f"no OpenCL device matches {choice!r}; there are: {have}")
    return fitting[0]


def _features(device: cl.Device) -> tuple[str, ...]:
    """Name what a kernel may use beyond the core language, the language's version, and what is watched."""
    extensions = set(device.extensions.split())
    there = {word for word in _FEATURES if f"cl_khr_{word}" in extensions or f"cl_intel_{word}" in extensions}
    version = re.search(r"\d\.\d", device.version)
    there.add(f"opencl-{version.group() if version else '1.2'}")
    if device.image_support:
        there.add("images")
    if is_cpu(device):
        there.add(GUARD_PAGES)
    return tuple(sorted(there))


def _key(device: cl.Device, on_cpu: bool) -> str:
    """Make ``cpu-amd-zen4-pocl3.1`` or ``gpu-nvidia-h200``: the runtime is part of a CPU device."""
    if not on_cpu:
        vendor = re.split(r"[\s(]", device.vendor.strip().lower())[0]
        return f"gpu-{vendor}-{_slug(device.name)}"
    version = re.search(r"PoCL (\d+\.\d+)", device.platform.version)
    if version:
        return f"cpu-{_processor()}-pocl{version.group(1)}"
    year = re.match(r"\d+", device.driver_version)
    vendor = _slug(device.platform.vendor, keep=True).split("-")[0]
    return f"cpu-{_processor()}-{vendor}{year.group() if year else ''}"


def _processor() -> str:
    """Name the processor by maker and generation, from /proc/cpuinfo."""
    facts: dict[str, str] = {}
    try:
        for line in Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines():
            name, _, value = line.partition(":")
            facts[name.strip()] = value.strip()
    except OSError:
        return os.uname().machine
    if facts.get("vendor_id") == "AuthenticAMD":
        family, model = int(facts.get("cpu family", 0)), int(facts.get("model", 0))
        generation = "zen4" if family == 25 and model in _ZEN4_MODELS else _ZEN.get(family, f"family{family}")
        return f"amd-{generation}"
    maker = "intel-" if facts.get("vendor_id") == "GenuineIntel" else ""
    return maker + (_slug(facts.get("model name", "")) or os.uname().machine)


def _slug(text: str, keep: bool = False) -> str:
    words = text if keep else _NOISE.sub(" ", text)
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
