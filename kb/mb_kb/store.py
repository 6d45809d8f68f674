"""The LMDB file: opened once a process, grown when full, followed when replaced, set aside when damaged.

Any number of processes read. One at a time writes, behind an outer file lock with a time limit: LMDB's
own lock waits without limit for a writer that was stopped. Everything lies in the one unnamed table,
because opening a named one needs a write transaction.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias, TypeVar

import filelock
import lmdb
import msgspec

from mb_kb import health, keys
from mb_kb.errors import Damaged, Full, KnowledgeError, Locked, ReadOnly, TooNew

SCHEMA = 1  # of the outcome log; additive changes of a row do not count
# Where the map starts; it grows by four. On Windows the file may take up all of it.
MAP_BYTES = 1 << 28 if sys.platform == "win32" else 1 << 30
MOST_MAP_BYTES = 1 << 40
LOCK_SECONDS = 0.5

# Values are small, and bytes are quicker to take apart than views into the map.
Transaction: TypeAlias = "lmdb.Transaction[bytes]"
T = TypeVar("T")

_DAMAGE = (
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.InvalidError,
    lmdb.VersionMismatchError,
    lmdb.IncompatibleError,
    lmdb.PanicError,
)
_SCHEMA_KEY = keys.META + b"schema"


class Store:
    """One LMDB file and its locks.

    Attributes:
        notices: Sentences for the user about what went wrong and what was done about it.
        readonly: Why the base cannot be written; None when it can.
        opening: Counts up whenever another file was opened: what was cached of the last one is void.
    """

    def __init__(self, folder: Path, map_bytes: int = MAP_BYTES) -> None:
        self.folder = folder
        self.path = folder / "outcomes.lmdb"
        self.notices: list[str] = []
        self.readonly: KnowledgeError | None = None
        self.opening = 0
        self._map_bytes = map_bytes
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._env: lmdb.Environment | None = None
        self._inode = 0
        self._open()

    def close(self) -> None:
        """Close the file; the store may not be used afterwards."""
        with self._lock:
            if self._env is not None:
                self._env.close()
                self._env = None

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Do some reading in one transaction; ``work`` must copy out what it keeps, and may run twice.

        Raises:
            KnowledgeError: The base could not be read.
        """
        with self._lock:
            self._follow()
            for attempt in (1, 2):
                try:
                    return self._read(work)
                except _DAMAGE as e:
                    if attempt == 2:
                        raise Damaged(f"{self.path} cannot be read: {e}") from e
                    self._set_aside(str(e))
                except msgspec.DecodeError as e:
                    raise self._unreadable(e) from e
        raise AssertionError

    @contextmanager
    def writing(self, seconds: float = LOCK_SECONDS) -> Iterator[None]:
        """Hold the right to write.

        Raises:
            Locked: Another process did not let go in time.
            ReadOnly: The folder may not be written.
            TooNew: A newer version wrote the base.
        """
        if self.readonly is not None:
            raise self.readonly
        lock = filelock.FileLock(self.folder / "writer.lock", timeout=seconds, thread_local=False)
        try:
            lock.acquire()
        except filelock.Timeout as e:
            raise Locked(
                f"another process has been writing to {self.folder} for more than {seconds:g} s"
            ) from e
        except OSError as e:
            raise health.explain_os(e, self.folder) from e
        try:
            yield
        finally:
            lock.release()

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Do some writing in one transaction, inside ``writing``; ``work`` may run more than once.

        Raises:
            KnowledgeError: Nothing was written.
        """
        with self._lock:
            self._follow()
            for attempt in (1, 2):
                try:
                    return self._write(work)
                except _DAMAGE as e:
                    if attempt == 2:
                        raise Damaged(f"{self.path} cannot be written: {e}") from e
                    self._set_aside(str(e))
                except msgspec.DecodeError as e:
                    raise self._unreadable(e) from e
        raise AssertionError

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._env is None

    @property
    def environment(self) -> lmdb.Environment:
        """The open LMDB environment, of this process only."""
        if self._env is None:
            raise KnowledgeError(f"{self.path} was closed")
        if os.getpid() != self._process:
            raise KnowledgeError("a forked process must open the knowledge base itself; start it by spawning")
        return self._env

    def _read(self, work: Callable[[Transaction], T]) -> T:
        try:
            with self.environment.begin() as t:
                return work(t)
        except lmdb.MapResizedError:
            self.environment.set_mapsize(0)
        except lmdb.ReadersFullError:
            self.environment.reader_check()
        try:
            with self.environment.begin() as t:
                return work(t)
        except lmdb.ReadersFullError as e:
            raise Locked(f"too many processes read {self.path} at once; close some windows") from e

    def _write(self, work: Callable[[Transaction], T]) -> T:
        self.environment.reader_check()  # readers that were killed would keep old pages alive
        while True:
            try:
                with self.environment.begin(write=True) as t:
                    if t.get(_SCHEMA_KEY) is None:
                        t.put(_SCHEMA_KEY, msgspec.msgpack.encode(SCHEMA))
                    return work(t)
            except lmdb.MapFullError:
                self._grow()
            except lmdb.MapResizedError:
                self.environment.set_mapsize(0)
            except _DAMAGE:
                raise
            except lmdb.Error as e:
                raise health.explain(e, self.path) from e

    def _unreadable(self, error: msgspec.DecodeError) -> Damaged:
        return Damaged(
            f"a row of {self.path} cannot be read ({error}); `modelblaster kb verify --repair` sums up "
            "its tables anew"
        )

    def _grow(self) -> None:
        size = min(self.environment.info()["map_size"] * 4, MOST_MAP_BYTES)
        try:
            self.environment.set_mapsize(size)
        except (MemoryError, lmdb.Error) as e:
            raise Full(
                f"{self.path} cannot grow to {size >> 20} MiB: raise the limit on address space (ulimit -v)"
            ) from e

    def _open(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise health.explain_os(e, self.folder) from e
        try:
            self._env = health.open_environment(self.path, self._map_bytes)
            self.readonly = None
        except ReadOnly as e:
            self._env = health.open_environment(self.path, self._map_bytes, readonly=True)
            self.readonly = e
        except Damaged as e:
            self._set_aside(str(e))
            return
        self._inode = self.path.stat().st_ino
        self.opening += 1
        if self.readonly is None:
            self._env.reader_check()
        try:
            self._check_schema()
        except (*_DAMAGE, msgspec.DecodeError) as e:
            self._set_aside(str(e))

    def _check_schema(self) -> None:
        raw = self._read(lambda t: bytes(t.get(_SCHEMA_KEY) or b""))
        schema = msgspec.msgpack.decode(raw, type=int) if raw else SCHEMA
        if schema > SCHEMA:
            self.readonly = TooNew(
                f"{self.path} was written by a newer version (schema {schema}, this one knows {SCHEMA}): "
                "it is read but not added to; update this program, or choose another folder"
            )

    def _follow(self) -> None:
        """Reopen when another process set the file aside and started a new one."""
        try:
            inode = self.path.stat().st_ino
        except OSError:
            inode = 0
        if inode != self._inode:
            self.environment.close()
            self._open()

    def _set_aside(self, why: str) -> None:
        """Rename a damaged file and start a new one; nothing is deleted."""
        if self._env is not None:
            self._env.close()
            self._env = None
        if self.readonly is not None:
            raise Damaged(f"{self.path} is damaged ({why}) and may not be replaced here")
        with self.writing(5.0):
            seen = self.path.stat().st_ino if self.path.exists() else 0
            # Someone else may have set it aside while we waited for the lock.
            if seen and (not self._inode or seen == self._inode):
                kept = self._rename()
                self.notices.append(
                    f"The knowledge base {self.path} is damaged ({why}). It was kept as {kept} and a new one "
                    f"was started; `modelblaster kb import {kept}` brings back what can be read."
                )
        self._open()

    def _rename(self) -> Path:
        stamp = time.strftime("%Y%m%dT%H%M%S")
        kept, n = self.folder / f"damaged-{stamp}.lmdb", 1
        while kept.exists():
            kept, n = self.folder / f"damaged-{stamp}-{n}.lmdb", n + 1
        lock = Path(f"{self.path}-lock")
        try:
            if lock.exists():
                lock.replace(f"{kept}-lock")
            self.path.replace(kept)
        except OSError as e:
            raise health.explain_os(e, self.folder) from e
        return kept
