"""Buffers and kernels for timed launches.

The buffers are the runtime's own, as in a user's program. Each launch should find the bytes that the first
one found: written buffers exist several times, filled anew before every turn. Where that takes too much
memory, launches share copies: as they are, if a second launch on a copy leaves the same bytes behind, else
filled again in between, which the device's own clock does not see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyopencl as cl

from mb_targets.opencl.arguments import bind
from mb_targets.protocol import Launch, Sample

if TYPE_CHECKING:
    from mb_targets.protocol import Data

SHARED_BYTES = 32 << 20
SHARED_COPIES = 64
HELD_BYTES = 512 << 20
POOLED_BYTES = 256 << 20
_KERNELS = 16


class Pool:
    """Buffers between uses: touching new memory for the first time costs more than filling it."""

    def __init__(self, context: cl.Context) -> None:
        self._context = context
        self._free: dict[int, list[cl.Buffer]] = {}
        self._bytes = 0

    def take(self, size: int) -> cl.Buffer:
        """Give a buffer of this size with unknown contents."""
        size = max(1, size)
        held = self._free.get(size)
        if held:
            self._bytes -= size
            return held.pop()
        return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size)

    def give(self, buffer: cl.Buffer) -> None:
        """Take a buffer back."""
        if self._bytes + buffer.size > POOLED_BYTES:
            buffer.release()
            return
        self._bytes += buffer.size
        self._free.setdefault(buffer.size, []).append(buffer)


class Timed:
    """Launches of one kernel with one set of arguments; ``arm`` before each ``launch``."""

    def __init__(
        self,
        queue: cl.CommandQueue,
        pool: Pool,
        make_kernel: Callable[[], cl.Kernel],
        launch: Launch,
        inputs: Mapping[str, Data],
    ) -> None:
        self._queue = queue
        self._pool = pool
        self._launch = launch
        self._inputs = inputs
        self._launches = 0
        self._make_kernel = make_kernel
        self._kernels: list[tuple[cl.Kernel, int]] = []
        self._copies: list[dict[str, cl.Buffer]] = []
        self._repeatable: bool | None = None
        self._first: dict[str, cl.Buffer] = {}
        self._read = {name: self._filled(name) for name in launch.buffers if name not in launch.written}
        if not queue.device.type & cl.device_type.CPU:
            self._first = {name: self._filled(name) for name in launch.written}
        self._copies.append({name: self._filled(name) for name in launch.written})
        self._enqueue(0)  # compiles for this work-group size, and warms up
        queue.finish()

    def suits(self, launch: Launch, inputs: Mapping[str, Data]) -> bool:
        """Tell whether these buffers are for just that."""
        return inputs is self._inputs and launch == self._launch

    def arm(self, launches: int) -> None:
        """Give every written buffer that so many launches use its initial bytes again."""
        self._launches = launches
        wanted = self._wanted(launches)
        while len(self._copies) < wanted:
            self._copies.append(
                {name: self._pool.take(self._launch.buffers[name]) for name in self._launch.written}
            )
        self._refill(wanted)
        self._queue.finish()

    def launch(self) -> Sample:
        """Launch everything, wait, and add up the events' times."""
        copies = self._wanted(self._launches)
        events = []
        for number in range(self._launches):
            if number and number % copies == 0 and not self._repeatable:
                self._refill(copies)
            events.append(self._enqueue(number % copies))
        self._queue.finish()
        total = sum(event.profile.end - event.profile.start for event in events if event is not None)
        return Sample(total / self._launches, self._launches)

    def release(self) -> None:
        """Give all buffers back."""
        for held in (self._read, self._first, *self._copies):
            for buffer in held.values():
                self._pool.give(buffer)
        self._copies.clear()
        self._read = self._first = {}

    def _enqueue(self, copy: int) -> cl.Event | None:
        if 0 in self._launch.global_size:
            return None
        return cl.enqueue_nd_range_kernel(
            self._queue, self._bound(copy), self._launch.global_size, self._launch.local_size
        )

    def _bound(self, copy: int) -> cl.Kernel:
        """Give a kernel with a copy's buffers as arguments; binding one anew is cheaper than making one."""
        place = copy % _KERNELS
        if place >= len(self._kernels):
            kernel = self._make_kernel()
            bind(kernel, self._launch, {**self._read, **self._copies[copy]})
            self._kernels.append((kernel, copy))
        kernel, bound = self._kernels[place]
        if bound != copy:
            for name, buffer in self._copies[copy].items():
                kernel.set_arg(self._launch.order.index(name), buffer)
            self._kernels[place] = (kernel, copy)
        return kernel

    def _wanted(self, launches: int) -> int:
        """Decide how many copies of the written buffers so many launches use."""
        size = max(1, sum(self._launch.buffers[name] for name in self._launch.written))
        shared = max(1, min(SHARED_COPIES, SHARED_BYTES // size))
        if launches > shared and self._repeats():
            return shared
        return min(launches, max(1, HELD_BYTES // size))

    def _refill(self, copies: int) -> None:
        for written in self._copies[:copies]:
            for name, buffer in written.items():
                self._fill(name, buffer)

    def _repeats(self) -> bool:
        """Tell whether a second launch on the first one's buffers leaves the same bytes."""
        if self._repeatable is None:
            written = self._copies[0]
            for name, buffer in written.items():
                self._fill(name, buffer)
            self._enqueue(0)
            first = {name: self._contents(name, buffer) for name, buffer in written.items()}
            self._enqueue(0)
            again = {name: self._contents(name, buffer) for name, buffer in written.items()}
            self._repeatable = all(np.array_equal(first[name], again[name]) for name in written)
        return self._repeatable

    def _filled(self, name: str) -> cl.Buffer:
        buffer = self._pool.take(self._launch.buffers[name])
        self._fill(name, buffer)
        return buffer

    def _fill(self, name: str, buffer: cl.Buffer) -> None:
        if not self._launch.buffers[name]:
            return
        if name in self._first:  # on the device already
            cl.enqueue_copy(self._queue, buffer, self._first[name])
        else:
            data = np.frombuffer(self._inputs[name], np.uint8)
            cl.enqueue_copy(self._queue, buffer, data, is_blocking=False)

    def _contents(self, name: str, buffer: cl.Buffer) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        held = np.empty(self._launch.buffers[name], np.uint8)
        if held.size:
            cl.enqueue_copy(self._queue, held, buffer)
        return held
