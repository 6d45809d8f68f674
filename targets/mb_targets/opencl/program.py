"""A built OpenCL program: runs on fresh guarded buffers, and timed launches.

Worker half; import only after the environment is set (``device``).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyopencl as cl

from mb_targets.errors import BuildError, RunError
from mb_targets.model import ITEM_BYTES, Variant
from mb_targets.opencl.arguments import bind
from mb_targets.opencl.fault import FaultReporter
from mb_targets.opencl.memory import DeviceMemory, HostMemory
from mb_targets.opencl.timed import Pool, Timed
from mb_targets.protocol import Launch, RunResult, Sample

if TYPE_CHECKING:
    from mb_targets.protocol import Data

_BYTES = {"char": 1, "short": 2, "half": 2, "int": 4, "float": 4, "long": 8, "double": 8}
_VECTOR_POINTER = re.compile(r"\bu?(char|short|half|int|float|long|double)(2|3|4|8|16)\s*(?:const\s*)?\*")
_LOG_LINE = re.compile(
    r"^(error|warning|note)?[^\n]*?:(\d+):(\d+): (?:(error|fatal error|warning|note): )?(.*)$"
)
_LOG_LINES = 40


@dataclass(frozen=True, slots=True)
class Station:
    """What all programs of a worker share."""

    queue: cl.CommandQueue
    pool: Pool
    faults: FaultReporter


def build(station: Station, variant: Variant, options: Sequence[str], folder: Path) -> OpenCLProgram:
    """Build a variant for a station's device.

    Raises:
        BuildError: The compiler refused it; each line says where in ``variant.source``.
    """
    flags = [*options, *variant.options, "-I", f'"{folder}"' if " " in str(folder) else str(folder)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pyopencl warns of every non-empty log
            program = cl.Program(station.queue.context, variant.source).build(flags)
        return OpenCLProgram(station, program, variant)
    except (cl.Error, ValueError) as error:
        raise BuildError(_explain(str(error), variant.name)) from None


def vector_alignment(source: str) -> int:
    """Give the alignment that a source may rightly expect of its buffers: that of its vector pointers."""
    widths = [
        _BYTES[kind] * (4 if lanes == "3" else int(lanes)) for kind, lanes in _VECTOR_POINTER.findall(source)
    ]
    return max(widths, default=1)


class OpenCLProgram:
    """A kernel that can be run and timed; see ``protocol.Program``."""

    def __init__(self, station: Station, program: cl.Program, variant: Variant) -> None:
        self._station = station
        self._queue = station.queue
        self._make_kernel = partial(cl.Kernel, program, variant.name)
        self._kernel = self._make_kernel()
        self._alignment = vector_alignment(variant.source)
        self._on_cpu = bool(self._queue.device.type & cl.device_type.CPU)
        self._timed: Timed | None = None

    def run(self, launch: Launch, inputs: Mapping[str, Data]) -> RunResult:
        """Run once; every buffer is new and ends at a guard page (on a GPU, at a pattern that is checked).

        Raises:
            RunError: The launch was refused or failed, or something was written around a buffer.
        """
        memory: dict[str, HostMemory | DeviceMemory] = {}
        try:
            for name, size in launch.buffers.items():
                memory[name] = self._allocate(name, size, launch, inputs[name])
            self._watch(launch, memory)
            self._enqueue(launch, {name: m.buffer for name, m in memory.items()})
            return _collect(launch, inputs, memory)
        except (cl.Error, MemoryError) as error:
            raise RunError(_sentence(error)) from None
        finally:
            for part in memory.values():
                part.release()

    def prepare(self, launch: Launch, inputs: Mapping[str, Data], launches: int) -> None:
        """Fill the buffers for timed launches; with the same arguments as before, only the written ones.

        Raises:
            RunError: The launch was refused or failed, or there is no memory for it.
        """
        try:
            if self._timed is None or not self._timed.suits(launch, inputs):
                self.close()
                self._timed = Timed(self._queue, self._station.pool, self._make_kernel, launch, inputs)
            self._timed.arm(launches)
        except (cl.Error, MemoryError) as error:
            self.close()
            raise RunError(_sentence(error)) from None

    def time(self) -> Sample:
        """Launch what was prepared, wait, and give the sum of the events' times over the launches.

        Raises:
            RunError: Nothing was prepared, or a launch failed.
        """
        if self._timed is None:
            raise RunError("nothing was prepared to be timed")
        try:
            return self._timed.launch()
        except cl.Error as error:
            raise RunError(_sentence(error)) from None

    def close(self) -> None:
        """Free the buffers of timed launches."""
        if self._timed is not None:
            self._timed.release()
            self._timed = None

    def _allocate(self, name: str, size: int, launch: Launch, data: Data) -> HostMemory | DeviceMemory:
        if len(data) != size:
            raise RunError(f"{name} holds {len(data)} bytes and the launch says {size}")
        if not self._on_cpu:
            return DeviceMemory(self._queue, size, data)
        lanes = launch.lanes.get(name, 1)
        natural = _item(launch, name) * (4 if lanes == 3 else lanes)
        return HostMemory(self._queue, size, data, max(natural, self._alignment))

    def _watch(self, launch: Launch, memory: Mapping[str, HostMemory | DeviceMemory]) -> None:
        """Have an access to a guard page reported with the buffer's name."""
        guarded = {n: (m.guarded, _item(launch, n)) for n, m in memory.items() if isinstance(m, HostMemory)}
        self._station.faults.watch(guarded)

    def _enqueue(self, launch: Launch, buffers: Mapping[str, cl.Buffer]) -> None:
        bind(self._kernel, launch, buffers)
        if 0 not in launch.global_size:  # OpenCL 1.2 refuses an empty NDRange; nothing to do is no error
            cl.enqueue_nd_range_kernel(self._queue, self._kernel, launch.global_size, launch.local_size)
        self._queue.finish()


def _item(launch: Launch, name: str) -> int:
    return ITEM_BYTES[launch.dtypes[name]]


def _collect(
    launch: Launch, inputs: Mapping[str, Data], memory: Mapping[str, HostMemory | DeviceMemory]
) -> RunResult:
    changed = []
    outputs = {}
    for name, part in memory.items():
        part.fetch()
        side = part.damage()
        if side:
            raise RunError(f"wrote {side} of {name}")
        if name in launch.written:
            outputs[name] = part.contents()
        elif not part.holds(inputs[name]):
            changed.append(name)
    slack = max((p.guarded.slack for p in memory.values() if isinstance(p, HostMemory)), default=0)
    return RunResult(outputs, tuple(changed), slack)


def _explain(message: str, name: str) -> str:
    """Make a build log short: each error with its line and column."""
    if "INVALID_KERNEL_NAME" in message:
        return f"the source has no kernel named {name}"
    found = [m.groups() for m in map(_LOG_LINE.match, message.splitlines()) if m]
    errors = [
        f"line {line}, column {column}: {text}"
        for before, line, column, after, text in found
        if "error" in (before or after or "")
    ]
    if errors:
        return "\n".join(dict.fromkeys(errors))
    return "\n".join(message.splitlines()[:_LOG_LINES])


def _sentence(error: Exception) -> str:
    """Say what a runtime's refusal means."""
    text = str(error)
    if "INVALID_WORK_GROUP_SIZE" in text:
        return "the device refuses this work-group size for this kernel and global size"
    if "INVALID_ARG" in text:
        return f"an argument does not fit the parameter's type ({text})"
    if isinstance(error, MemoryError) or "OUT_OF" in text or "ALLOCATION" in text:
        return f"the device has no memory for this launch ({text})"
    return f"the launch failed ({text})"
