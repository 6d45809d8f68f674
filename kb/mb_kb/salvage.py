"""Read what can be read of a database that was set aside as damaged."""

from __future__ import annotations

import shutil
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import lmdb
import msgspec

from mb_kb import append, keys, records, tally
from mb_kb.errors import Damaged
from mb_kb.spool import Entry

GIVE_UP = 50_000  # numbers in a row without a readable outcome: the end of the log, or of what is left of it

_MAGIC = bytes.fromhex("dec0efbe")
_MAGIC_AT = 16  # behind the header of the first page


def is_database(path: Path) -> bool:
    """Tell a database, however damaged, from an export."""
    with path.open("rb") as f:
        return path.suffix == ".lmdb" or f.read(_MAGIC_AT + 4)[_MAGIC_AT:] == _MAGIC


def salvage(path: Path) -> Iterator[Entry]:
    """Give every outcome that can still be read, from a copy, looked up one by one.

    Raises:
        Damaged: Not even the first page is left.
    """
    with tempfile.TemporaryDirectory(prefix="modelblaster-") as folder:
        copy = Path(folder) / "copy.lmdb"
        shutil.copyfile(path, copy)
        try:
            env = _open(copy)
        except lmdb.Error as e:
            raise Damaged(f"nothing can be read of {path}: {e}") from e
        try:
            yield from _entries(env)
        finally:
            env.close()


def _open(copy: Path) -> lmdb.Environment:
    env = lmdb.open(str(copy), subdir=False, readonly=True, lock=False, readahead=False)
    needed = (env.info()["last_pgno"] + 1) * env.stat()["psize"]
    with copy.open("r+b") as f:
        # Pages that were cut off become pages of zeros: an error to read, where a missing one kills the
        # process.
        f.truncate(max(needed, copy.stat().st_size))
    return env


def _entries(env: lmdb.Environment) -> Iterator[Entry]:
    number = misses = 0
    while misses < GIVE_UP:
        entry = _entry(env, number)
        misses = 0 if entry else misses + 1
        if entry:
            yield entry
        number += 1


def _entry(env: lmdb.Environment, number: int) -> Entry | None:
    raw = _get(env, keys.sequence_key(number))
    if raw is None:
        return None
    try:
        row = records.decode(raw[16:])
    except msgspec.DecodeError:
        return None
    source = b""
    if records.gain(row):
        source = _get(env, keys.BLOB + keys.identity_key(row.provenance.variant)) or b""
    return Entry(raw[:16], raw[16:], _vector(env, keys.identity_key(row.identity)), _text(source))


def _vector(env: lmdb.Environment, identity: bytes) -> bytes:
    raw = _get(env, keys.KERNEL + identity)
    if raw is None:
        return b""
    try:
        found = _get(env, keys.FEATURE + append.FEATURE.pack(max(0, tally.kernel(raw).feature)))
        owner, _, vector = append.vector_row(found or b"")
    except msgspec.DecodeError:
        return b""
    return vector if owner == identity else b""


def _text(raw: bytes) -> str:
    try:
        return zlib.decompress(raw).decode() if raw else ""
    except (zlib.error, UnicodeDecodeError):
        return ""


def _get(env: lmdb.Environment, key: bytes) -> bytes | None:
    """Look a key up in a transaction of its own: an error spoils the transaction it happens in."""
    try:
        with env.begin() as t:
            return t.get(key)
    except lmdb.Error:
        return None
