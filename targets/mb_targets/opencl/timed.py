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

SHARED_FROM_BYTES = 64 << 20


class Timed:
    """Launches of one kernel, ready to go."""

    def __init__(
        self,
        queue: cl.CommandQueue,
        make_kernel: Callable[[], cl.Kernel],
        launch: Launch,
        inputs: Mapping[str, Data],
        launches: int,
    ) -> None:
        self._queue = queue
        self._launch = launch
        self._inputs = inputs
        self._launches = launches
        self._make_kernel = make_kernel
        self._read: dict[str, cl.Buffer] = {}
        self._sets: list[tuple[cl.Kernel, dict[str, cl.Buffer]]] = []
        for name in launch.buffers:
            if name not in launch.written:
                self._read[name] = self._filled(name)
        self._add_set()
        self._enqueue(0)  # compiles for this work-group size, and warms up
        queue.finish()
        self._add_sets()
        self.refill()

    def same(self, launch: Launch, inputs: Mapping[str, Data], launches: int) -> bool:
        """Tell whether these buffers are for just that."""
        return inputs is self._inputs and launches == self._launches and launch == self._launch

    def refill(self) -> None:
        """Give every written buffer its initial bytes again."""
        for _, written in self._sets:
            for name, buffer in written.items():
                self._fill(name, buffer)
        self._queue.finish()

    def launch(self) -> Sample:
        """Launch everything, wait, and add up the events' times."""
        events = [self._enqueue(number) for number in range(self._launches)]
        self._queue.finish()
        total = sum(event.profile.end - event.profile.start for event in events if event is not None)
        return Sample(total / self._launches, self._launches)

    def release(self) -> None:
        """Free all buffers."""
        for _, written in self._sets:
            for buffer in written.values():
                buffer.release()
        for buffer in self._read.values():
            buffer.release()
        self._sets.clear()
        self._read.clear()

    def _enqueue(self, number: int) -> cl.Event | None:
        if 0 in self._launch.global_size:
            return None
        kernel, _ = self._sets[number % len(self._sets)]
        return cl.enqueue_nd_range_kernel(
            self._queue, kernel, self._launch.global_size, self._launch.local_size
        )

    def _add_sets(self) -> None:
        size = max(1, sum(self._launch.buffers[name] for name in self._launch.written))
        affordable = max(1, SHARED_FROM_BYTES // size)
        wanted = self._launches
        if wanted > affordable and self._repeats():
            wanted = affordable
        while len(self._sets) < wanted:
            self._add_set()

    def _repeats(self) -> bool:
        """Tell whether a second launch on the first one's buffers leaves the same bytes."""
        _, written = self._sets[0]
        first = {name: self._contents(name, buffer) for name, buffer in written.items()}
        self._enqueue(0)
        return all(
            np.array_equal(first[name], self._contents(name, buffer)) for name, buffer in written.items()
        )

    def _add_set(self) -> None:
        from mb_targets.opencl.program import bind

        written = {name: self._filled(name) for name in self._launch.written}
        kernel = self._make_kernel()
        bind(kernel, self._launch, {**self._read, **written})
        self._sets.append((kernel, written))

    def _filled(self, name: str) -> cl.Buffer:
        buffer = cl.Buffer(self._queue.context, cl.mem_flags.READ_WRITE, max(1, self._launch.buffers[name]))
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
