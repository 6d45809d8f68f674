"""Buffers and kernels for timed launches.

The buffers are the runtime's own, as in a user's program. Each launch should find the bytes that the first
one found: written buffers exist several times, filled anew before every turn. Where the copies of all
launches would take too much memory, launches share copies, but only if a second launch on the same copy
leaves the same bytes behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyopencl as cl

from mb_targets.protocol import Launch, Sample

if TYPE_CHECKING:
    from mb_targets.protocol import Data

MOST_BYTES = 32 << 20
MOST_COPIES = 64
POOLED_BYTES = 256 << 20


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
        self._read: dict[str, cl.Buffer] = {}
        self._sets: list[tuple[cl.Kernel, dict[str, cl.Buffer]]] = []
        self._repeatable: bool | None = None
        for name in launch.buffers:
            if name not in launch.written:
                self._read[name] = self._filled(name)
        self._add_set()
        self._enqueue(0)  # compiles for this work-group size, and warms up
        queue.finish()

    def suits(self, launch: Launch, inputs: Mapping[str, Data]) -> bool:
        """Tell whether these buffers are for just that."""
        return inputs is self._inputs and launch == self._launch

    def arm(self, launches: int) -> None:
        """Give every written buffer that so many launches use its initial bytes again."""
        self._launches = launches
        wanted = self._copies(launches)
        while len(self._sets) < wanted:
            self._add_set()
        for _, written in self._sets[:wanted]:
            for name, buffer in written.items():
                self._fill(name, buffer)
        self._queue.finish()

    def launch(self) -> Sample:
        """Launch everything, wait, and add up the events' times."""
        copies = self._copies(self._launches)
        events = [self._enqueue(number % copies) for number in range(self._launches)]
        self._queue.finish()
        total = sum(event.profile.end - event.profile.start for event in events if event is not None)
        return Sample(total / self._launches, self._launches)

    def release(self) -> None:
        """Give all buffers back."""
        for _, written in self._sets:
            for buffer in written.values():
                self._pool.give(buffer)
        for buffer in self._read.values():
            self._pool.give(buffer)
        self._sets.clear()
        self._read.clear()

    def _enqueue(self, copy: int) -> cl.Event | None:
        if 0 in self._launch.global_size:
            return None
        kernel, _ = self._sets[copy]
        return cl.enqueue_nd_range_kernel(
            self._queue, kernel, self._launch.global_size, self._launch.local_size
        )

    def _copies(self, launches: int) -> int:
        """Decide how many copies of the written buffers so many launches use."""
        size = max(1, sum(self._launch.buffers[name] for name in self._launch.written))
        affordable = max(1, min(MOST_COPIES, MOST_BYTES // size))
        if launches > affordable and self._repeats():
            return affordable
        return launches

    def _repeats(self) -> bool:
        """Tell whether a second launch on the first one's buffers leaves the same bytes."""
        if self._repeatable is None:
            _, written = self._sets[0]
            for name, buffer in written.items():
                self._fill(name, buffer)
            self._enqueue(0)
            first = {name: self._contents(name, buffer) for name, buffer in written.items()}
            self._enqueue(0)
            again = {name: self._contents(name, buffer) for name, buffer in written.items()}
            self._repeatable = all(np.array_equal(first[name], again[name]) for name in written)
        return self._repeatable

    def _add_set(self) -> None:
        from mb_targets.opencl.program import bind

        written = {name: self._filled(name) for name in self._launch.written}
        kernel = self._make_kernel()
        bind(kernel, self._launch, {**self._read, **written})
        self._sets.append((kernel, written))

    def _filled(self, name: str) -> cl.Buffer:
        buffer = self._pool.take(self._launch.buffers[name])
        self._fill(name, buffer)
        return buffer

    def _fill(self, name: str, buffer: cl.Buffer) -> None:
        if self._launch.buffers[name]:
            cl.enqueue_copy(
                self._queue, buffer, np.frombuffer(self._inputs[name], np.uint8), is_blocking=False
            )

    def _contents(self, name: str, buffer: cl.Buffer) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        held = np.empty(self._launch.buffers[name], np.uint8)
        if held.size:
            cl.enqueue_copy(self._queue, held, buffer)
        return held
