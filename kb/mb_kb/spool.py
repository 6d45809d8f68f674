"""Outcomes that could not be written in time: one file each, whole or absent, taken by the next writer.

A file is complete or absent, and an outcome that the base already knows is skipped, so a spool may be
written by any number of processes, read twice, or left behind by a kill, without a lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from mb_kb import health, records

SUFFIX = ".outcome"


class Entry(msgspec.Struct, array_like=True, frozen=True):
    """An outcome on its way into the base.

    Attributes:
        id: 16 bytes that name the outcome everywhere.
        row: The outcome, encoded.
        features: Its kernel's vector, one byte a feature; empty for none.
        source: The variant's source, empty where it is not kept.
    """

    id: bytes
    row: bytes
    features: bytes = b""
    source: str = ""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Entry)


def put(folder: Path, entry: Entry) -> None:
    """Write an entry where the next writer finds it; it is on the disk when this returns.

    Raises:
        KnowledgeError: It could not be written.
    """
    name = entry.id.hex() + SUFFIX
    part = folder / f"{name}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as f:
            f.write(_encoder.encode(entry))
            f.flush()
            os.fsync(f.fileno())
        part.replace(folder / name)
    except OSError as e:
        raise health.explain_os(e, folder) from e


def waiting(folder: Path) -> list[Path]:
    """List the entries that wait, oldest outcome first."""
    try:
        return sorted(p for p in folder.iterdir() if p.suffix == SUFFIX)
    except FileNotFoundError:
        return []


def read(paths: list[Path]) -> Iterator[Entry]:
    """Read entries; one that another writer took meanwhile, or that cannot be read, is passed over."""
    for path in paths:
        try:
            entry = _decoder.decode(path.read_bytes())
            records.decode(entry.row)  # or it would spoil the transaction of all the others
        except FileNotFoundError:
            continue
        except msgspec.DecodeError:
            path.replace(path.with_suffix(".unreadable"))
        else:
            yield entry
