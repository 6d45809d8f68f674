"""Buffers for one run of a kernel: guarded host memory on a CPU device, fenced device memory elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import pyopencl as cl

from mb_targets.opencl.guard import CANARY, Guarded

if TYPE_CHECKING:
    from mb_targets.protocol import Data

_BYTE = np.dtype(np.uint8)
_FENCE = 256


class HostMemory:
    """A buffer in guarded host memory, which the runtime uses in place.

    Raises:
        MemoryError: There is no memory for it.
    """

    def __init__(self, queue: cl.CommandQueue, size: int, data: Data, alignment: int) -> None:
        self._queue = queue
        self.guarded = Guarded(size, alignment)
        self.guarded.fill(data)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        self.buffer = cl.Buffer(queue.context, flags, hostbuf=self.guarded.view)

    def fetch(self) -> None:
        """Make what the device wrote visible; copies nothing where the memory is used in place."""
        size = max(1, self.guarded.size)
        mapped, _ = cl.enqueue_map_buffer(self._queue, self.buffer, cl.map_flags.READ, 0, (size,), _BYTE)
        cast("cl.MemoryMap", mapped.base).release(self._queue)
        self._queue.finish()

    def contents(self) -> bytes:
        """Copy the bytes out."""
        return bytes(self.guarded.view[: self.guarded.size])

    def holds(self, data: Data) -> bool:
        """Tell whether the bytes still equal ``data``."""
        return self.guarded.holds(data)

    def damage(self) -> str:
        """Say on which side of the buffer something was written."""
        return self.guarded.damage()

    def release(self) -> None:
        """Free it."""
        self.buffer.release()
        self.guarded.release()


class DeviceMemory:
    """A buffer in device memory, between two fences of a known pattern.

    The buffer is a part of a larger one, so it begins where the device allows a part to begin.
    """

    def __init__(self, queue: cl.CommandQueue, size: int, data: Data) -> None:
        self._queue = queue
        self._size = size
        align = max(_FENCE, queue.device.mem_base_addr_align // 8)
        self._front = align
        held = max(1, size)
        total = self._front + held + _FENCE
        self._whole = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, total)
        cl.enqueue_fill_buffer(queue, self._whole, np.full(1, CANARY, _BYTE), 0, total)
        self.buffer = self._whole.get_sub_region(self._front, held)
        if size:
            cl.enqueue_copy(queue, self.buffer, np.frombuffer(data, np.uint8))
        self._host = np.empty(0, np.uint8)

    def fetch(self) -> None:
        """Copy the bytes and both fences to the host."""
        self._host = np.empty(self._front + max(1, self._size) + _FENCE, np.uint8)
        cl.enqueue_copy(self._queue, self._host, self._whole)

    def contents(self) -> bytes:
        """Give the bytes."""
        return self._host[self._front : self._front + self._size].tobytes()

    def holds(self, data: Data) -> bool:
        """Tell whether the bytes still equal ``data``."""
        inner = self._host[self._front : self._front + self._size]
        return bool(np.array_equal(inner, np.frombuffer(data, np.uint8)))

    def damage(self) -> str:
        """Say on which side of the buffer something was written."""
        if (self._host[: self._front] != CANARY).any():
            return "before the start"
        return "past the end" if (self._host[self._front + self._size :] != CANARY).any() else ""

    def release(self) -> None:
        """Free it."""
        self.buffer.release()
        self._whole.release()
