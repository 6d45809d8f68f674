"""Memory whose last byte touches a protected page, so that reading or writing past it ends the process.

Worker half. A runtime that uses host memory in place (PoCL and Intel's do, at any alignment) then checks
every access of a kernel at full speed, byte for byte.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mb_targets.protocol import Data

PAGE = mmap.PAGESIZE
CANARY = 0xA5
_HUGE_FROM = 4 << 20
_PROT_NONE = 0
_PROT_READ_WRITE = 3
_MAP_PRIVATE_ANONYMOUS_NORESERVE = 0x2 | 0x20 | 0x4000
_MADV_HUGEPAGE = 14

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
]  # fmt: skip
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


class Guarded:
    """``size`` bytes between two protected pages, the last one touching the second page.

    Where ``alignment`` does not divide the size, the start is aligned and up to ``alignment - 1`` bytes lie
    between the last byte and the page. Those, and what lies before the start on its page, hold a pattern that
    ``damage`` looks at.

    Raises:
        MemoryError: The system gives no memory.
    """

    def __init__(self, size: int, alignment: int = 1) -> None:
        self.size = size
        held = max(1, size)
        span = -(-held // alignment) * alignment
        inner = -(-span // PAGE) * PAGE
        self._length = inner + 2 * PAGE
        base = _libc.mmap(None, self._length, _PROT_NONE, _MAP_PRIVATE_ANONYMOUS_NORESERVE, -1, 0)
        if base is None or base == ctypes.c_void_p(-1).value:
            raise MemoryError(f"no memory for a buffer of {size} bytes")
        self._base = int(base)
        if _libc.mprotect(self._base + PAGE, inner, _PROT_READ_WRITE):
            self.release()
            raise MemoryError(f"no memory for a buffer of {size} bytes")
        if inner >= _HUGE_FROM:
            _libc.madvise(self._base + PAGE, inner, _MADV_HUGEPAGE)  # eight page faults and not 4096
        self.address = self._base + PAGE + inner - span
        self._zones = ((self._base + PAGE, self.address), (self.address + size, self._base + PAGE + inner))
        for start, end in self._zones:
            ctypes.memset(start, CANARY, end - start)

    @property
    def slack(self) -> int:
        """Bytes between the last one and the page: a read of them is not caught."""
        return self._zones[1][1] - self._zones[1][0] if self.size else 0

    @property
    def view(self) -> memoryview:
        """The bytes themselves, for as long as this is not released; one byte where the size is 0."""
        return memoryview((ctypes.c_ubyte * max(1, self.size)).from_address(self.address)).cast("B")

    def fill(self, data: Data) -> None:
        """Copy ``size`` bytes in."""
        if self.size:
            self.view[:] = memoryview(data).cast("B")

    def holds(self, data: Data) -> bool:
        """Tell whether the bytes equal ``data``."""
        if not self.size:
            return True
        other = np.frombuffer(data, np.uint8)
        return not _libc.memcmp(self.address, other.ctypes.data, self.size)

    def damage(self) -> str:
        """Say on which side something was written, empty when on none."""
        for (start, end), side in zip(self._zones, ("before the start", "past the end"), strict=True):
            if ctypes.string_at(start, end - start) != bytes([CANARY]) * (end - start):
                return side
        return ""

    def offset_of(self, address: int) -> int | None:
        """Give an address's offset from the start where it lies in these bytes or their pages, else None."""
        inside = self._base <= address < self._base + self._length
        return address - self.address if inside else None

    def release(self) -> None:
        """Give the memory back; nothing may use it any more."""
        if self._base:
            _libc.munmap(self._base, self._length)
            self._base = self._length = 0
