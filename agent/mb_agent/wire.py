"""The messages between a job and its worker processes, and the channel that carries them.

MessagePack over a Unix socket, each message after its length as four bytes. Bulk bytes never travel here:
they lie in sealed memory files whose descriptors are passed along with the message that first names them.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from typing import Literal, TypeAlias

import msgspec

from mb_targets.model import Device, Kernel, LaunchSpec, Variant
from mb_targets.protocol import Launch, Sample

Place: TypeAlias = tuple[int, int]
"""Where bytes lie in a memory file: offset and size."""


class Shared(msgspec.Struct, frozen=True, array_like=True):
    """A set of inputs; the file's descriptor comes along with the first message that names it."""

    id: int
    places: dict[str, Place] | None = None


class Describe(msgspec.Struct, frozen=True, tag="describe"):
    """Ask for the device."""


class Build(msgspec.Struct, frozen=True, tag="build"):
    """Ask for a program, to be known by ``handle``."""

    handle: int
    variant: Variant
    options: tuple[str, ...]
    folder: str


class Run(msgspec.Struct, frozen=True, tag="run"):
    """Ask for one run; outputs go to ``places`` of the results file, sent along when it is new."""

    handle: int
    launch: Launch
    inputs: Shared
    places: dict[str, Place]
    results: bool


class Prepare(msgspec.Struct, frozen=True, tag="prepare"):
    """Ask for buffers for timed launches."""

    handle: int
    launch: Launch
    inputs: Shared
    launches: int


class Time(msgspec.Struct, frozen=True, tag="time"):
    """Ask for the timed launches."""

    handle: int


class Sanitize(msgspec.Struct, frozen=True, tag="sanitize"):
    """Ask for a memory or race check."""

    name: str
    variant: Variant
    options: tuple[str, ...]
    launch: Launch
    inputs: Shared


class Probe(msgspec.Struct, frozen=True, tag="probe"):
    """Ask for the extents that a launch leaves open."""

    kernel: Kernel
    launch: LaunchSpec
    folder: str


class Close(msgspec.Struct, frozen=True, tag="close"):
    """Free a program and the sets of inputs that are no longer wanted."""

    handle: int | None
    forget: tuple[int, ...]


class Described(msgspec.Struct, frozen=True, tag="described"):
    """The device, and which layers confine the worker."""

    device: Device
    confined: tuple[str, ...]


class Done(msgspec.Struct, frozen=True, tag="done"):
    """Done; nothing to say."""


class Ran(msgspec.Struct, frozen=True, tag="ran"):
    """A run ended and its outputs lie where they were asked for."""

    changed_inputs: tuple[str, ...]
    slack: int


class Timed(msgspec.Struct, frozen=True, tag="timed"):
    """The device's own time."""

    sample: Sample


class Sanitized(msgspec.Struct, frozen=True, tag="sanitized"):
    """A check's finding; empty when it passed, None when it could not be made."""

    finding: str | None


class Probed(msgspec.Struct, frozen=True, tag="probed"):
    """A launch with its extents filled in."""

    launch: LaunchSpec


class Raised(msgspec.Struct, frozen=True, tag="raised"):
    """The worker half raised; ``kind`` says which error."""

    kind: Literal["unavailable", "build", "run", "internal"]
    message: str


Request: TypeAlias = Describe | Build | Run | Prepare | Time | Sanitize | Probe | Close
Reply: TypeAlias = Described | Done | Ran | Timed | Sanitized | Probed | Raised

_LENGTH = struct.Struct("<I")
_LARGEST = 64 << 20
_encoder = msgspec.msgpack.Encoder()
_requests: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_replies: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)


def encode(message: Request | Reply) -> bytes:
    """Write a message with its length before it."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


def decode_request(body: bytes) -> Request:
    """Read a request without its length."""
    return _requests.decode(body)


def decode_reply(body: bytes) -> Reply:
    """Read a reply without its length.

    Raises:
        msgspec.DecodeError: It is no reply.
    """
    return _replies.decode(body)


class Channel:
    """One end of the socket."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._pending = bytearray()
        self._descriptors: list[int] = []

    def fileno(self) -> int:
        """Give the descriptor, for select."""
        return self._socket.fileno()

    def send(self, message: Request | Reply, descriptors: tuple[int, ...] = (), limit: float = 60.0) -> None:
        """Send a message, with descriptors attached to its first byte.

        Raises:
            OSError: The other end is gone, or did not read within ``limit`` seconds.
        """
        data = memoryview(encode(message))
        end = time.monotonic() + limit
        if descriptors:
            sent = socket.send_fds(self._socket, [data], list(descriptors))
            data = data[sent:]
        while data:
            try:
                data = data[self._socket.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL) :]
            except BlockingIOError:
                left = end - time.monotonic()
                if left <= 0 or not select.select([], [self._socket], [], left)[1]:
                    raise TimeoutError("the other end does not read") from None

    def receive(self) -> bytes | None:
        """Read what has arrived; give a whole message's body, or None while it is not whole.

        Raises:
            EOFError: The other end is gone.
        """
        whole = self._take()
        if whole is not None:
            return whole
        try:
            data, descriptors, _, _ = socket.recv_fds(self._socket, 1 << 16, 8)
        except ConnectionError:
            raise EOFError from None
        if not data:
            raise EOFError
        self._descriptors += descriptors
        self._pending += data
        return self._take()

    def take_descriptor(self) -> int:
        """Give the oldest descriptor received and not yet taken; the caller owns it."""
        return self._descriptors.pop(0)

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def _take(self) -> bytes | None:
        if len(self._pending) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._pending)
        if length > _LARGEST:
            raise EOFError
        end = _LENGTH.size + length
        if len(self._pending) < end:
            return None
        body = bytes(self._pending[_LENGTH.size : end])
        del self._pending[:end]
        return body
