"""Say which buffer a kernel left, from within the signal that then ends the process.

Worker half. The line goes to standard error, whose end the optimizer keeps.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mb_targets.protocol import FAULT

if TYPE_CHECKING:
    from mb_targets.opencl.guard import Guarded

_SA_SIGINFO, _SA_RESETHAND = 0x4, 0x80000000
_ADDRESS_OFFSET = 16  # of si_addr in siginfo_t, on 64-bit Linux

_Handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class _Action(ctypes.Structure):
    """Glibc's and musl's ``struct sigaction``."""

    _fields_ = (
        ("handler", _Handler),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_uint),
        ("restorer", ctypes.c_void_p),
    )


class FaultReporter:
    """Watches the guarded buffers of one run at a time."""

    def __init__(self) -> None:
        self._watched: dict[str, tuple[Guarded, int]] = {}
        self._action = _Action(handler=_Handler(self._report), flags=_SA_SIGINFO | _SA_RESETHAND)
        self._libc = ctypes.CDLL(None)

    def watch(self, buffers: Mapping[str, tuple[Guarded, int]]) -> None:
        """Report on these buffers from now on, each with the bytes of its elements.

        Runtimes install handlers of their own when they compile, so this is called before each run.
        """
        self._watched = dict(buffers)
        self._libc.sigaction(signal.SIGSEGV, ctypes.byref(self._action), None)

    def _report(self, _number: int, info: int, _context: int) -> None:
        """Write one line; after it the access is tried again, and the process ends as it would have."""
        address = ctypes.c_void_p.from_address(info + _ADDRESS_OFFSET).value or 0
        for name, (memory, item) in self._watched.items():
            offset = memory.offset_of(address)
            if offset is not None:
                line = f"{FAULT}{name}[{offset // item}], which has {memory.size // item} elements\n"
                os.write(2, line.encode())
                return
