"""The limits around anything that runs generated code, and the group it dies with.

A child gets a session and process group of its own, a clean environment, a private folder, limits on memory,
files and CPU, and the kernel's promise to end it with its parent. ``start`` is the parent's part; ``enter``
is the child's and must come before the child loads anything of its task: preparing the child between fork and
exec instead would be unsafe in a parent with threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import resource
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mb_agent.confine import confine

PASSED = (
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
    "OCL_ICD_VENDORS",
    "PYTHONPATH",
)
"""Variables of the user's that reach a child: those that drivers and our own packages are found by."""

DEVICES = ("null", "zero", "shm", "nvidia*", "dri", "kfd", "dxg", "kgsl-3d0", "mali0")
"""What a runtime may write to under /dev."""

FILE_BYTES = 4 << 30
CPU_SECONDS = 4 * 3600
_LEAST_AGE_SECONDS = 60
_PREFIX = "modelblaster-worker-"
_PR_SET_PDEATHSIG = 1


def environment(folder: Path) -> dict[str, str]:
    """Make a child's whole environment; its home and temporary files are ``folder``."""
    clean = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }
    if site.ENABLE_USER_SITE:
        clean["PYTHONUSERBASE"] = site.getuserbase()
    clean.update((name, os.environ[name]) for name in PASSED if name in os.environ)
    return clean


@dataclass(slots=True)
class Child:
    """A running child with its group, its private folder and the pipe of its combined output.

    The folder is locked by this process and by the child, so that one that nobody needs any more can be told.
    """

    process: subprocess.Popen[bytes]
    folder: Path
    lock: int

    @property
    def pid(self) -> int:
        """The child's process id, which is also that of its group."""
        return self.process.pid

    @property
    def output(self) -> int:
        """Descriptor of the pipe with its standard output and error; reads do not block."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def end(self) -> int:
        """Kill the whole group, reap the child and delete its folder; give its return code."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        code = self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self.lock)
        return code


def start(module: str, arguments: Sequence[str], descriptors: Sequence[int] = ()) -> Child:
    """Start ``python -m module arguments`` as a child that will call ``enter``.

    The kernel ends the child when the *thread* that called this ends, so call it from one that lives long
    enough.

    Raises:
        OSError: The machine has no process, memory or temporary folder left.
    """
    _sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = _locked(folder)
    command = [sys.executable, "-P", "-m", module, *arguments]
    env = environment(folder) | {"MODELBLASTER_PARENT": str(os.getpid())}
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(*descriptors, lock),
            start_new_session=True,
            bufsize=0,
        )
    except OSError:
        os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)
        raise
    child = Child(process, folder, lock)
    os.set_blocking(child.output, False)
    return child


def enter() -> tuple[str, ...]:
    """Put the limits on this process, which ``start`` started, and tie its life to its parent's.

    Returns:
        Which of ``confine.LAYERS`` hold.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != int(os.environ.pop("MODELBLASTER_PARENT", "0")):
        sys.exit(1)  # the parent was gone before the promise was made
    for limit, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_DATA, _memory_limit()),  # not RLIMIT_AS: GPU drivers reserve more than there is
    ):
        _, hard = resource.getrlimit(limit)
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (allowed, allowed))
    return tuple(confine([Path.cwd(), *(path for pattern in DEVICES for path in Path("/dev").glob(pattern))]))


def _sweep(parent: Path) -> None:
    """Delete the folders of children that were killed with their parents: nobody holds their locks."""
    for left in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime < _LEAST_AGE_SECONDS:
                continue  # it may have been made just now, and not be locked yet
            lock = _locked(left)
            shutil.rmtree(left, ignore_errors=True)
            os.close(lock)


def _locked(folder: Path) -> int:
    """Lock a folder for as long as the descriptor is open here or in a child.

    Raises:
        OSError: It is locked already, gone, or another user's.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_uid != os.getuid():
            raise PermissionError(f"{folder} is another user's")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _memory_limit() -> int:
    """Allow three quarters of the machine's memory, at least 4 GiB."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(4 << 30, physical * 3 // 4)
