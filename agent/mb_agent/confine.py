"""What the kernel forbids a worker for good: writing outside its folder, the network, and other processes.

Landlock and seccomp, without privileges. Each layer that this machine lacks is left out; ``confine`` says
which ones hold. Reading stays allowed: runtimes, compilers and drivers read all over the system.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

# Rights that Landlock takes away outside the writable folders (linux/landlock.h): write a file, remove a
# directory or file, make any kind of file, link or rename across directories, truncate.
_WRITE_FILE = 1 << 1
_WRITES = (_WRITE_FILE, sum(1 << bit for bit in range(4, 13)))
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_TCP = 0b11
_SCOPES = 0b11
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_PATH = 1

_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_FORBIDDEN = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "unshare": (272, 97), "setns": (308, 268),
    "bpf": (321, 280),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "perf_event_open": (298, 241), "kexec_load": (246, 104),
    "init_module": (175, 105), "finit_module": (313, 273),
}  # fmt: skip
_SOCKET = (41, 198)
_LOAD, _EQUAL, _NOT_LESS, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _PR_GET_SECCOMP = 38, 22, 21

LAYERS = ("landlock", "seccomp")
"""What confines a worker, where the machine has it."""


def confine(writable: Sequence[Path]) -> list[str]:
    """Give up, for this process and all that it starts, what no worker needs.

    Args:
        writable: Folders and devices that stay writable.

    Returns:
        The layers that now hold: ``landlock``, ``seccomp``.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    held = []
    if _landlock(libc, writable):
        held.append("landlock")
    if _seccomp(libc):
        held.append("seccomp")
    return held


def offered() -> list[str]:
    """Name the layers that this machine has for a worker; gives up nothing."""
    libc = ctypes.CDLL(None, use_errno=True)
    has = {
        "landlock": libc.syscall(_CREATE_RULESET, None, 0, 1) >= 1,
        "seccomp": platform.machine() in _ARCH and libc.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0,
    }
    return [layer for layer in LAYERS if has[layer]]


def _landlock(libc: ctypes.CDLL, writable: Sequence[Path]) -> bool:
    abi = libc.syscall(_CREATE_RULESET, None, 0, 1)
    if abi < 1:
        return False
    rights = sum(_WRITES) | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0)
    attributes = struct.pack("QQQ", rights, _TCP if abi >= 4 else 0, _SCOPES if abi >= 6 else 0)
    ruleset = libc.syscall(_CREATE_RULESET, attributes, 8 if abi < 4 else 16 if abi < 6 else 24, 0)
    if ruleset < 0:
        return False
    for path in writable:
        allowed = rights if path.is_dir() else rights & (_WRITE_FILE | _TRUNCATE)
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        libc.syscall(_ADD_RULE, ruleset, _RULE_PATH, struct.pack("=Qi", allowed, place), 0)
        os.close(place)
    done = libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return bool(done)


def _seccomp(libc: ctypes.CDLL) -> bool:
    machine = platform.machine()
    if machine not in _ARCH:
        return False
    code = b"".join(struct.pack("=HBBI", *step) for step in _filter(machine))
    steps = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(steps))
    return bool(libc.prctl(_PR_SET_SECCOMP, 2, ctypes.c_char_p(program), 0, 0) == 0)


def _filter(machine: str) -> list[tuple[int, int, int, int]]:
    """Write the filter: refuse the forbidden calls, and sockets of any family but the local one."""
    column = list(_ARCH).index(machine)
    numbers = [pair[column] for pair in _FORBIDDEN.values()]
    start = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, _ARCH[machine]), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    if machine == "x86_64":
        start += [
            (_NOT_LESS, 0, 1, 0x40000000),
            (_RETURN, 0, 0, _REFUSE),
        ]  # the x32 numbers of the same calls
    tail = [
        (_EQUAL, 0, 2, _SOCKET[column]),
        (_LOAD, 0, 0, 16),  # its first argument, the family
        (_EQUAL, 0, 1, socket.AF_UNIX),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    checks = [(_EQUAL, len(numbers) - k + len(tail) - 2, 0, number) for k, number in enumerate(numbers)]
    return start + checks + tail
