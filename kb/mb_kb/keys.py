"""Keys: what the base is sorted by.

Everything lies in one B-tree, and the first byte of a key says which table it belongs to. A packed state
lists its fields from what transfers best between machines to what transfers least, so that cutting its
tail gives a coarser state, and all states below a coarser one lie together.
"""

from __future__ import annotations

import hashlib
import struct
from functools import lru_cache
from typing import NamedTuple

from mb_targets.model import Action, State

META = b"m"
AGGREGATE = b"a"
BLOB = b"b"
CONSTRAINT = b"c"
ELITE = b"e"
FEATURE = b"f"
KERNEL = b"k"
SOURCE = b"s"
OUTCOME = b"z"  # last in the tree, so that outcomes can be appended

LONGEST_NAME = 48  # bytes of one name inside a key; LMDB allows 511 for the whole key
ANY_KERNEL, ONE_KERNEL = b"\x00", b"\xff"

_number = struct.Struct(">H")
_sequence = struct.Struct(">Q")


class Level(NamedTuple):
    """How much of a state a table row is about: its name, and how many fields of the packed order count."""

    name: str
    fields: int


LEVELS: tuple[Level, ...] = (
    Level("family", 1),
    Level("bottleneck", 2),
    Level("dtype", 3),
    Level("size", 5),
    Level("target", 7),
    Level("vendor", 8),
    Level("device", 9),
)
EXACT = len(LEVELS) - 1


def vendor(device: str) -> str:
    """Give the part of a device's key that devices of one kind, vendor and instruction set share."""
    return "-".join(device.split("-")[:2])


def fields(state: State) -> tuple[str | int, ...]:
    """List a state's fields in the packed order."""
    return (
        state.family,
        state.bottleneck,
        state.dtype,
        state.size_class,
        state.intensity,
        ",".join(state.access),
        state.target,
        vendor(state.device),
        state.device,
    )


@lru_cache(maxsize=4096)
def pack(state: State) -> tuple[bytes, ...]:
    """Pack a state to one prefix a level, coarsest first; the last one holds the whole state."""
    parts = [_pack_field(f) for f in fields(state)]
    return tuple(bytes([n]) + b"".join(parts[: level.fields]) for n, level in enumerate(LEVELS))


def unpack(key: bytes) -> State:
    """Read back a state from its last prefix; names too long for a key come back shortened."""
    values: list[str] = []
    at = 1
    for n in range(LEVELS[EXACT].fields):
        if n in (3, 4):
            values.append(str(_number.unpack_from(key, at)[0] - 0x8000))
            at += _number.size
        else:
            end = key.index(b"\0", at)
            values.append(key[at:end].decode())
            at = end + 1
    family, bottleneck, dtype, size, intensity, access, target, _, device = values
    walked = tuple(access.split(",")) if access else ()
    return State(family, walked, dtype, int(size), int(intensity), bottleneck, target, device)


def describe(state: State) -> str:
    """Write a state for people."""
    size = 4.0**state.size_class
    unit = "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    access = f", {' and '.join(state.access)} access" if state.access else ""
    return (
        f"{state.dtype} {state.family}{access}, {size:g} {unit}, {2.0**state.intensity:g} operations a byte, "
        f"limited by {state.bottleneck}, {state.target} on {state.device}"
    )


def identity_key(identity: str) -> bytes:
    """Give the 16 bytes that stand for a kernel's identity digest."""
    try:
        raw = bytes.fromhex(identity)
    except ValueError:
        raw = b""
    return raw if len(raw) == 16 else hashlib.blake2b(identity.encode(), digest_size=16).digest()


def device_key(device: str) -> bytes:
    """Give a device's place in the index of one kernel's wins."""
    return _pack_field(device)


def action_key(action: Action, *more: str) -> bytes:
    """Give the 8 bytes that stand for an action (and whatever else tells rows of a table apart)."""
    text = "\0".join((action.id, *action.parameters, "", *more))
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def chain_key(chain: tuple[tuple[str, tuple[str, ...]], ...]) -> bytes:
    """Give the 8 bytes that stand for a chain of actions."""
    text = "\0\0".join("\0".join((name, *parameters)) for name, parameters in chain)
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def outcome_id(created: float, payload: bytes) -> bytes:
    """Name an outcome by its time in milliseconds and a digest of its content, so that ids sort by time."""
    stamp = max(0, min(int(created * 1000), (1 << 48) - 1))
    return stamp.to_bytes(6, "big") + hashlib.blake2b(payload, digest_size=10).digest()


def sequence_key(sequence: int) -> bytes:
    """Give the key of an outcome."""
    return OUTCOME + _sequence.pack(sequence)


def sequence_of(key: bytes) -> int:
    """Read back an outcome's number from its key."""
    number: int = _sequence.unpack_from(key, 1)[0]
    return number


def after(prefix: bytes) -> bytes:
    """Give the first key that lies behind all keys with this prefix."""
    cut = prefix.rstrip(b"\xff")
    return cut[:-1] + bytes([cut[-1] + 1])


def _pack_field(value: str | int) -> bytes:
    if isinstance(value, int):
        return _number.pack(max(0, min(value + 0x8000, 0xFFFF)))
    raw = value.encode()
    if len(raw) > LONGEST_NAME or b"\0" in raw:
        kept = raw.replace(b"\0", b" ")[: LONGEST_NAME - 17].decode(errors="ignore").encode()
        raw = kept + b"~" + hashlib.blake2b(raw, digest_size=8).hexdigest().encode()
    return raw + b"\0"
