"""Find how far into its buffers a kernel reaches, by running it once or twice on memory that shows it.

Worker half. Every buffer is a large region that the system fills in page by page as it is touched; after a
launch, ``/proc/self/pagemap`` tells which pages were. The lengths found at several sizes are then matched
with simple expressions over the launch's symbols. A CPU runtime that uses host memory in place is needed.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import struct
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyopencl as cl

from mb_targets import expression
from mb_targets.concrete import concretize
from mb_targets.errors import BuildError, LaunchUnknown, RunError
from mb_targets.expression import ExpressionError
from mb_targets.model import ITEM_BYTES, Argument, Kernel, LaunchSpec
from mb_targets.opencl.arguments import TYPES, bind
from mb_targets.protocol import Launch

UNKNOWN = "?"
_REGION_BYTES = 256 << 20
_PAGE = mmap.PAGESIZE
_FLAGS = 0x1 | 0x20 | 0x4000  # anonymous, no reserve; shared: private memory counts against a worker's limit
_MADV_NOHUGEPAGE = 15
_SCALES = ((1.0, 1.0, 1.0), (0.5, 0.75, 0.625), (0.75, 0.5, 0.875))

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
]  # fmt: skip
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one launch touched: the sizes, and the pages from its start that each buffer needs."""

    values: Mapping[str, float]
    pages: Mapping[str, int]


class Region:
    """Zeros as far as the eye reaches; only touched pages exist.

    Raises:
        MemoryError: The system gives no address space.
    """

    def __init__(self, size: int = _REGION_BYTES) -> None:
        self.size = size
        base = _libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, _FLAGS, -1, 0)
        if base is None or base == ctypes.c_void_p(-1).value:
            raise MemoryError(f"no address space for {size} bytes")
        self.address = int(base)
        _libc.madvise(self.address, size, _MADV_NOHUGEPAGE)

    @property
    def view(self) -> memoryview:
        """The bytes; reading or writing them touches them."""
        return memoryview((ctypes.c_ubyte * self.size).from_address(self.address)).cast("B")

    def touched_pages(self) -> int:
        """Count the pages from the start to the last one touched."""
        entry = struct.calcsize("Q")
        with Path("/proc/self/pagemap").open("rb") as file:
            file.seek(self.address // _PAGE * entry)
            entries = np.frombuffer(file.read(self.size // _PAGE * entry), np.uint64)
        present = np.flatnonzero(entries >> np.uint64(63))
        return int(present[-1]) + 1 if len(present) else 0

    def release(self) -> None:
        """Give it back."""
        _libc.munmap(self.address, self.size)


def probe(queue: cl.CommandQueue, kernel: Kernel, launch: LaunchSpec, folder: Path) -> LaunchSpec:
    """Fill in the extents that a launch leaves as ``?``.

    Args:
        queue: Of the device to run on.
        kernel: The kernel.
        launch: Its launch; what it says stays.
        folder: Where includes are looked up.

    Raises:
        LaunchUnknown: The kernel reaches further than any sensible buffer, or this device cannot show it.
        BuildError: The compiler refused it.
        RunError: The launch was refused.
    """
    unknown = [a for a in launch.arguments if a.extent == UNKNOWN and a.role != "local"]
    if not unknown:
        return launch
    if not queue.device.type & cl.device_type.CPU:
        raise LaunchUnknown(_ask(kernel, unknown))
    program = _build(queue, kernel, launch.options, folder)
    seen = [_launch(queue, program, kernel, launch, values) for values in _trials(launch)]
    found = {a.name: _extent(launch, a, seen) for a in unknown}
    missed = [a for a in unknown if found[a.name] is None]
    if missed:
        raise LaunchUnknown(_ask(kernel, missed))
    return _completed(launch, found)


def _completed(launch: LaunchSpec, found: Mapping[str, str | None]) -> LaunchSpec:
    """Put the extents in; where one is a plain number, no size may grow past what was probed."""
    arguments = tuple(
        replace(a, extent=found[a.name] or UNKNOWN, origin="probed") if a.name in found else a
        for a in launch.arguments
    )
    if not any(extent and extent.isdigit() for extent in found.values()):
        return replace(launch, arguments=arguments)
    symbols = tuple(replace(s, high=min(s.high, max(s.value, s.low))) for s in launch.symbols)
    return replace(launch, arguments=arguments, symbols=symbols)


def _ask(kernel: Kernel, unknown: Sequence[Argument]) -> str:
    names = ", ".join(a.name for a in unknown)
    example = f"// mb: {unknown[0].name}={unknown[0].dtype}[N]"
    return f"how long {names} of {kernel.name} has to be could not be found; say it, as in `{example}`"


def _build(queue: cl.CommandQueue, kernel: Kernel, options: Sequence[str], folder: Path) -> cl.Program:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pyopencl warns of every non-empty log
            program = cl.Program(queue.context, kernel.source)
            program.build([*options, "-I", str(folder)])
            return program
    except cl.Error as error:
        raise BuildError(str(error)) from None


def _trials(launch: LaunchSpec) -> Iterator[dict[str, float]]:
    """Give the sizes to measure with, then two smaller sets in other proportions."""
    for scale in _SCALES:
        values: dict[str, float] = {}
        for symbol, part in zip(launch.symbols, itertools.cycle(scale), strict=False):
            value = symbol.value
            if value == value // 1 and value >= 16:
                step = symbol.multiple
                value = max(symbol.low, int(value * part) // step * step)
            values[symbol.name] = value
        yield values


def _launch(
    queue: cl.CommandQueue, program: cl.Program, kernel: Kernel, launch: LaunchSpec, values: dict[str, float]
) -> _Seen:
    one = tuple(replace(a, extent="1") if a.extent == UNKNOWN else a for a in launch.arguments)
    concrete = concretize(kernel, replace(launch, arguments=one), values, None)
    regions = {name: Region() for name in concrete.buffers}
    try:
        _fill(concrete, regions)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        buffers = {n: cl.Buffer(queue.context, flags, hostbuf=r.view) for n, r in regions.items()}
        made = cl.Kernel(program, kernel.name)
        bind(made, concrete, buffers)
        cl.enqueue_nd_range_kernel(queue, made, concrete.global_size, concrete.local_size)
        queue.finish()
        pages = {name: region.touched_pages() for name, region in regions.items()}
        for buffer in buffers.values():
            buffer.release()
    except (cl.Error, MemoryError) as error:
        raise RunError(f"{kernel.name} could not be run to see what it touches ({error})") from None
    finally:
        for region in regions.values():
            region.release()
    return _Seen(values, pages)


def _fill(launch: Launch, regions: Mapping[str, Region]) -> None:
    """Fill index buffers inside their ranges; zeros do for the others."""
    draw = np.random.default_rng(1)
    for name, (low, high) in launch.ranges.items():
        count = launch.buffers[name] // ITEM_BYTES[launch.dtypes[name]]
        values = draw.integers(int(low), int(high) + 1, count).astype(TYPES[launch.dtypes[name]])
        regions[name].view[: launch.buffers[name]] = memoryview(values.tobytes())


def _extent(launch: LaunchSpec, argument: Argument, seen: Sequence[_Seen]) -> str | None:
    """Find the simplest expression that needs just the pages touched, at all sizes; else a number."""
    size = ITEM_BYTES[argument.dtype]
    pages = [s.pages[argument.name] for s in seen]
    if max(pages) * _PAGE >= _REGION_BYTES:
        return None
    if len(set(pages)) == 1:
        return str(max(1, pages[0]) * _PAGE // size)
    for candidate in _candidates(launch):
        try:
            lengths = [int(expression.evaluate(candidate, s.values)) * size for s in seen]
        except ExpressionError:
            continue
        if [-(-n // _PAGE) for n in lengths] == pages:
            return candidate
    return str(max(pages) * _PAGE // size)


def _candidates(launch: LaunchSpec) -> Iterator[str]:
    """Give expressions that a buffer's length may follow, the simplest first."""
    sizes = [s.name for s in launch.symbols if s.value == s.value // 1 and s.value >= 1]
    groups = zip(launch.global_size, launch.local_size or ("1",) * len(launch.global_size), strict=True)
    items = "*".join(f"({g})" for g in launch.global_size)
    counts = "*".join(f"(({g})//({part}))" for g, part in groups)
    single = list(dict.fromkeys([*sizes, items, counts]))
    pairs = [f"({a})*({b})" for a, b in itertools.combinations_with_replacement(single, 2)]
    padded = [f"({a}+{n})*({b}+{n})" for n in (1, 2, 4) for a, b in itertools.combinations(sizes, 2)]
    triples = ["*".join(names) for names in itertools.combinations_with_replacement(sizes, 3)]
    scaled = [f"{n}*({t})" for n in (2, 3, 4, 8, 16) for t in single]
    for text in (*single, *pairs, *scaled, *padded, *triples):
        yield expression.text(expression.simplify(expression.parse(text)))
