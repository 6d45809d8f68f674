"""Opening an LMDB file that may be truncated, foreign, read-only or on a full disk; errors put in words."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import lmdb

from mb_kb.errors import Damaged, Full, KnowledgeError, Locked, ReadOnly

MAX_READERS = 512
SMALLEST_MAP_BYTES = 1 << 26
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)


def open_environment(path: Path, map_bytes: int, readonly: bool = False) -> lmdb.Environment:
    """Open a file that is safe to read, or make a new one.

    Raises:
        Damaged: It is no LMDB file, or it was cut short.
        ReadOnly: It may not be written and ``readonly`` was not asked for; or it may not even be read.
        Full: There is no room for it.
    """
    if readonly and not path.exists():
        raise ReadOnly(f"there is no knowledge base at {path}, and one may not be made there")
    size = map_bytes
    while True:
        try:
            env = _open(path, size, readonly)
            break
        except (MemoryError, lmdb.MemoryError) as e:
            if size <= SMALLEST_MAP_BYTES:
                raise Full(f"no address space to map {path}: raise the limit (ulimit -v)") from e
            size //= 4
        except lmdb.Error as e:
            raise explain(e, path) from e
    try:
        _check_length(env, path, readonly)
    except Damaged:
        env.close()
        raise
    return env


def explain(error: lmdb.Error, path: Path) -> KnowledgeError:
    """Say in words what LMDB refused."""
    if isinstance(error, lmdb.InvalidError | lmdb.VersionMismatchError | lmdb.CorruptedError):
        return Damaged(f"not an LMDB file of a version that can be read: {error}")
    if isinstance(error, lmdb.ReadersFullError):
        return Locked(f"too many processes have {path} open; close some windows")
    code = abs(error.code)
    if isinstance(error, lmdb.ReadonlyError) or code in _REFUSED:
        return ReadOnly(f"{path} may not be written; change its permissions or choose another folder")
    if isinstance(error, lmdb.DiskError) or code in _NO_ROOM:
        return Full(
            f"{path} could not be written, most likely because the disk is full ({error}); make room, "
            "what was stored before is intact"
        )
    return KnowledgeError(f"{path}: {error}")


def explain_os(error: OSError, path: Path) -> KnowledgeError:
    """Say in words what the operating system refused."""
    if error.errno in _REFUSED:
        return ReadOnly(f"{path} may not be written; change its permissions or choose another folder")
    if error.errno in _NO_ROOM:
        return Full(f"the disk that holds {path} is full; make room, what was stored before is intact")
    return KnowledgeError(f"{path}: {error.strerror}")


def _open(path: Path, map_bytes: int, readonly: bool) -> lmdb.Environment:
    # A new file is made in the format that older readers know.
    engine = lmdb.open if path.exists() else partial(lmdb.open, lib_version=0)

    def attempt(lock: bool) -> lmdb.Environment:
        return engine(
            str(path),
            subdir=False,
            map_size=map_bytes,
            readonly=readonly,
            create=not readonly,
            readahead=False,
            max_readers=MAX_READERS,
            lock=lock,
            mode=0o600,
        )

    try:
        return attempt(lock=True)
    except lmdb.Error:
        # In a folder that may not be written there can be no lock file. Nothing of ours writes there either.
        if not readonly:
            raise
        return attempt(lock=False)


def _check_length(env: lmdb.Environment, path: Path, readonly: bool) -> None:
    """Refuse a file that ends before its last page: reading there would end the process by SIGBUS."""
    page_bytes = env.stat()["psize"]
    needed = (env.info()["last_pgno"] + 1) * page_bytes
    actual = path.stat().st_size
    if actual >= needed:
        return
    # LMDB does not write pages that were taken and given back within one transaction, so a sound file may end
    # short. The verifier reads without mapping and tells the two apart.
    findings = structure(path)
    if findings:
        raise Damaged(f"{actual} bytes of {needed} are there; {findings[0]}")
    if not readonly:
        os.truncate(path, needed)


def structure(path: Path) -> list[str]:
    """Check every page of a file without mapping it, and say what is wrong; needs 5 s at a million outcomes.

    Nobody may write meanwhile.
    """
    from lmdb import verify  # a thousand lines that a healthy start does not need

    check: Callable[[str], list[object]] = verify.verify
    try:
        return [str(f) for f in check(str(path))]
    except (verify.VerifyError, OSError) as e:
        return [str(e)]
